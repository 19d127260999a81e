"""Wire codecs: pure functions between canonical values and a provider's JSON. No I/O, clock, environment or logging.

    anthropic         Anthropic's Messages, and compatible hosts        gemini    generateContent: Gemini API, Vertex AI
    openai_chat       OpenAI's chat completions, and compatible hosts   ollama    Ollama's /api/chat
    openai_responses  OpenAI's Responses, and compatible hosts          shared    what the wires use; no wire imports another
    bedrock_converse  Amazon Bedrock's Converse, for every vendor       batches   batch APIs: many requests in one
    embeddings        texts to vectors, on several wires
    decisions         questions to distributions: OpenAI's, System One's and the Gemini API's endpoints

Each wire is a package that satisfies ``Codec``. ``encoding``, ``decoding`` and ``stream_decoder`` hold its functions,
``tables`` its options, finish reasons, counts and errors by the wire's names, ``profiles`` its hosts. Input is never changed.

    WireProfile     how one host varies the wire, as data; the defaults of a subclass are the wire's own provider
    ModelFacts      what one model accepts and refuses (sampling, efforts, forced calls ...), as data
    Target          provider + model + profile + capabilities + facts: all that encode() may decide by
    EncodedRequest  the request to send; decode() gets it again for its tool names and call ids
    Codec           encode, decode, decode_error; ``StreamingCodec`` adds decoder() -> ``Decoder``

The steps of encode(), in order; each is optional, and in ``shared``:

    prepare(request, target)               ``assembly``: the history, the names both ways, the tools and the choice
    place_options(options, table, target)  ``options``: sampling and limits: placed, dropped with a warning, or refused
    requested_reasoning(), fit_effort()    ``reasoning``: the option of that name in the efforts of the model
    assemble(ready, path, body, warnings)  ``assembly``: extra_body and extra_headers, last

decode() uses ``choices`` (finish reason against content), ``usage`` (token counts) and ``errors``; ``framing`` turns the bytes
of a streamed reply into JSON events, which a ``stream_decoder`` assembles into a body for decode().

A provider's own data is on canonical values: ``ThinkingPart.provider`` and ``OpaquePart.provider`` are the profile's
``family``; ``ToolCall.provider_data`` is ``{family: data}``. normalize_history() drops the data of other families. A choice's
``logprobs`` have OpenAI's shape ({"content": [{"token", "logprob", "top_logprobs"}]}); its ``citations`` are flat objects
with ``type`` and, if known, ``url``, ``title``, ``start_index``, ``end_index`` and ``text``.
"""
