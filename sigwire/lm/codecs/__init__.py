"""Wire codecs: pure functions between canonical values and a provider's JSON. Nothing here does I/O.

openai_shape   OpenAI-like message dicts and answer objects, which Python programs pass to each other
"""
