"""Language models: who answers a ``Request``.

base       LanguageModel (the protocol) and BaseLM (write your own)     client     LM("provider/model")
providers  the table of model strings                                   offline    the embedded model, no key and no network
endpoint   a row, a codec and a transport, tied together                policy     what is tried again, and when
transport  where bytes move (blocking, awaiting)                         codecs     neutral values <-> a provider's JSON, pure
fake       FakeLM for tests                                             history    the last calls of a model
secrets    which options are never shown or stored                      litellm_bridge   every provider without a row
sse        bytes of a streamed reply -> JSON events                     pieces     a reply over HTTP, piece by piece
telling    a streamed reply told as it comes
"""
