"""Language models: a ``Request`` becomes a ``Response``.

base            LanguageModel (the protocol) and BaseLM    client         LM("provider/model")
backend         Backend, and which one a model gets        http_backend   row, codec and transport
litellm         the backend for providers without a row    offline        the embedded model: no key, no network
providers       the provider table, endpoints and keys     policy         layers around exchanges: retries
codecs          canonical values <-> a wire's JSON, pure    http           HTTP clients, blocking and awaited
stream_events   streamed replies as events                 preview        requests before they are sent; the last calls
openai_dicts    OpenAI-shaped dicts <-> canonical values   option_aliases, secrets   options by name
router          Router: several models as one              portable       to_provider: a history for one model
batch           BatchLM: requests through batch APIs       histories      histories in the form that a provider takes
prompt_watch    prompts that a server cut silently         media          images converted to the limits of a provider
fake            FakeLM for tests                           request_ids    the id that a provider gives a request
context_length  Ollama's limit of a model, asked once
"""
