"""What all wire codecs share: the shapes that go in and out, and the table-driven steps that every wire repeats.

A codec is a module of pure functions (it satisfies ``Codec``): no socket, clock, environment or logging, and its
input is never changed. The shapes, from the outside in:

    Dialect      how one host speaks the wire, as data; subclassed per wire, its defaults are the wire's own provider
    ModelFacts   what one model takes and refuses (sampling, efforts, forced calls ...), as data
    Target       provider + model + dialect + capabilities + facts: everything encode() may decide by
    Encoded      the request to send; also handed to decode(), which needs the tool names and call ids that were sent
    Codec        encode, decode, decode_error, read_request; ``StreamingCodec`` adds decoder() -> ``Decoder``

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

from __future__ import annotations

from sigwire.lm.codecs.loose import (
    at,
    is_number,
    object_of,
    objects_of,
    string_of,
    without,
)
from sigwire.lm.codecs.media import (
    data_url,
    encoded_by,
    needs_media,
    read_content,
    split_data_url,
    text_of_file,
)
from sigwire.lm.codecs.offers import (
    Offer,
    can_force,
    functions_only,
    name_map,
    offer,
    provider_data,
    tool_name,
)
from sigwire.lm.codecs.options import (
    Drop,
    Option,
    OptionTable,
    Place,
    Refuse,
    Skip,
    drop_options,
    finish,
    headers_for,
    in_words,
    merge,
    place_options,
    put,
    repeat_warning,
    supports,
    wanted_choices,
    without_sampling,
)
from sigwire.lm.codecs.reasoning import (
    BUDGETS,
    EFFORTS,
    Reasoning,
    asked_reasoning,
    budget_for,
    effort_for_budget,
    fit_effort,
)
from sigwire.lm.codecs.replies import (
    is_invented,
    joined,
    settle,
    usage_of,
)
from sigwire.lm.codecs.shapes import (
    Codec,
    Decoder,
    Dialect,
    Encoded,
    Framing,
    ModelFacts,
    StreamingCodec,
    Target,
)

__all__ = [
    "BUDGETS",
    "EFFORTS",
    "Codec",
    "Decoder",
    "Dialect",
    "Drop",
    "Encoded",
    "Framing",
    "ModelFacts",
    "Offer",
    "Option",
    "OptionTable",
    "Place",
    "Reasoning",
    "Refuse",
    "Skip",
    "StreamingCodec",
    "Target",
    "asked_reasoning",
    "at",
    "budget_for",
    "can_force",
    "data_url",
    "drop_options",
    "effort_for_budget",
    "encoded_by",
    "finish",
    "fit_effort",
    "functions_only",
    "headers_for",
    "in_words",
    "is_invented",
    "is_number",
    "joined",
    "merge",
    "name_map",
    "needs_media",
    "object_of",
    "objects_of",
    "offer",
    "place_options",
    "provider_data",
    "put",
    "read_content",
    "repeat_warning",
    "settle",
    "split_data_url",
    "string_of",
    "supports",
    "text_of_file",
    "tool_name",
    "usage_of",
    "wanted_choices",
    "without",
    "without_sampling",
]
