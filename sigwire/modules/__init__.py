"""Modules: programs made of calls to models, and the only code that runs a tool."""
