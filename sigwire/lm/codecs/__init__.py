"""Wire codecs: pure functions between canonical values and a provider's JSON. Nothing here does I/O.

shapes         what every codec takes and gives; options, offers (tools), reasoning, media, replies, loose (JSON of others)
repair         history made fit for a wire      schema_rules   JSON Schema as a wire takes it
faults         error replies, classified        dialects       the hosts that speak chat completions, one row each
assembly       streamed replies: told as they come, put together, and decoded like whole ones
openai_chat    chat completions: OpenAI and compatible hosts, in a package
openai_responses  OpenAI's Responses, and the hosts that speak it
anthropic      Anthropic's Messages, and the hosts that speak it, in a package
gemini         Gemini's generateContent, on the Gemini API and on Vertex AI, in a package
ollama         Ollama's own wire, /api/chat, in a package
openai_shape   OpenAI-like message dicts and answer objects, which Python programs pass to each other

A codec is a module of pure functions (it satisfies ``Codec``): no socket, clock, environment or logging, and its
input is never changed. The shapes, from the outside in:

    Dialect      how one host speaks the wire, as data; subclassed per wire, its defaults are the wire's own provider
    ModelFacts   what one model takes and refuses (sampling, efforts, forced calls ...), as data
    Target       provider + model + dialect + capabilities + facts: everything encode() may decide by
    Encoded      the request to send; also handed to decode(), which needs the tool names and call ids that were sent
    Codec        encode, decode, decode_error; ``StreamingCodec`` adds decoder() -> ``Decoder``

The steps, in the order in which encode() takes them (each is optional, all are pure):

    repair.repair(messages, rules)             history made fit for the wire: ids, order, answers, foreign thinking
    name_map(tools, called, rules)             tool names both ways
    offer(request, target)                     the tools that may be sent, compiled, and what the choice means
    place_options(options, table, target)      sampling and limits: placed, dropped with a warning, or refused
    asked_reasoning / fit_effort               the option ``reasoning`` in the model's own words
    finish(body, request)                      extra_body merged last

Where a provider's own data stands on canonical values: ``ThinkingPart.provider`` and ``OpaquePart.provider`` are the
dialect's ``family``; ``ToolCall.provider_data`` is ``{family: data}`` (``provider_data()`` reads it). repair() drops
what other families left, so that an encoder only ever sees its own.

decode() uses ``settle`` (finish reason against content) and ``usage_of`` (counts by path); errors are in ``faults``.
A choice's ``logprobs`` have OpenAI's shape ({"content": [{"token", "logprob", "top_logprobs"}]}); its ``citations``
are flat objects with ``type`` and, where known, ``url``, ``title``, ``start_index``, ``end_index`` and ``text``.
"""
