"""Shared by all wires: everything of a codec that does not depend on one wire. Pure.

interface    the protocols and values of a codec              assembly        the first and the last step of an encoder
options      sampling and limits, by a table of the wire      reasoning       the requested effort, fit to a model
tools        tools, names on the wire, the choice             schema          a JSON Schema as a wire accepts it
output       structured output, as strictly as possible       media           images, audio and files as a wire takes them
history      a message history that a wire accepts            choices         finish reasons, numbered calls, joined responses
errors       error replies, by a table of rules               framing         bytes of a streamed reply to JSON events
google_errors  those of Google's APIs
untrusted    untrusted JSON, read without surprises           stream_decoder  events as they arrive, and the whole body
cache_marks  the ends of a prompt that are worth a mark of the provider's cache
usage        token counts and cost, by a table of the wire      paths           the name of a model in a URL
"""
