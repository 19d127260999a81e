"""Previews of requests, and the printed history of calls: what a call sends, before it is sent and after it.

preview     Preview: the first request of a call          draft     a request, made by the code that sends it
model_call  ModelCall: a finished or failed call          call_log  the last calls of a model
printing    calls as text, JSON or JSON lines             curl      the shell command of a request
tokens      estimated input tokens, corrected by calls    limits    limits of models in tokens, with their source
cache_health  CacheHealth: what the prompt cache read of calls, and where it was broken
"""
