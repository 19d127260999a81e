"""Previews of requests, and the printed history of calls: what a call sends, before it is sent and after it."""
