"""Previews of programs: the requests that a program would send, and the history of the calls that it made."""
