"""Language models: who answers a ``Request``.

base       LanguageModel (the protocol) and BaseLM (write your own)     client     LM("provider/model")
providers  the table of model strings                                   offline    the embedded model, no key and no network
fake       FakeLM and DummyLM for tests                                 history    the last calls of a model
codecs     neutral values <-> a provider's JSON, pure                   secrets    which options are never shown or stored
"""
