"""Texts of refusals: each provider's is the error of a request that is too long, and the window that it names is read."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from sigwire import ContextWindowExceededError
from sigwire.core.tools.names import NameRules
from sigwire.lm.codecs import anthropic, bedrock_converse, ollama, openai_chat, openai_responses
from sigwire.lm.codecs.shared.errors import ErrorBody, lm_error
from sigwire.lm.codecs.shared.google_errors import GOOGLE_ERRORS
from sigwire.lm.codecs.shared.interface import Target, WireProfile
from sigwire.modules.context.sizes import window_in_text


class Refusal(NamedTuple):
    """A text of a provider, the window that it names, and its status."""

    text: str
    window: int | None
    status: int = 400


OPENAI = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
REFUSALS = {
    "openai": Refusal(OPENAI, 8192),
    "openai responses": Refusal(
        "Your input exceeds the context window of this model. Please adjust your input and try again.", None
    ),
    "deepseek": Refusal(
        "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the messages, "
        "8192 in the completion). Please reduce the length of the messages or completion.",
        131072,
    ),
    "openrouter": Refusal(
        "This endpoint's maximum context length is 1048576 tokens. However, you requested about 1293741 tokens (1227853 of "
        "text input, 353 of tool input, 65535 in the output). Please reduce the length of either one.",
        1048576,
    ),
    "vllm": Refusal(
        "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 4096 tokens and "
        "your request has 2104 input tokens (2000 > 4096 - 2104).",
        4096,
    ),
    "vllm, of a prompt": Refusal(
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is "
        "no smaller than the number of text tokens.",
        4096,
    ),
    "sglang": Refusal("The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4096),
    "sglang, with max_tokens": Refusal(
        "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5000 "
        "tokens: 904 tokens from the input messages and 4096 tokens for the completion.",
        4096,
    ),
    "anthropic": Refusal("prompt is too long: 210000 tokens > 200000 maximum", 200000),
    "anthropic, with max_tokens": Refusal(
        "input length and `max_tokens` exceed context limit: 90402 + 116650 > 204648, decrease input length or `max_tokens` "
        "and try again",
        204648,
    ),
    "gemini": Refusal(
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", 1048575
    ),
    "gemini, without a count": Refusal(
        "The input token count exceeds the maximum number of tokens allowed (1048576).", 1048576
    ),
    "bedrock": Refusal("Input is too long for requested model.", None),
    "bedrock, nova": Refusal(
        "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.",
        None,
    ),
    "xai": Refusal("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131072),
    "groq": Refusal("Please reduce the length of the messages or completion.", None),
    "cerebras": Refusal(
        "Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000", 40000
    ),
    "mistral": Refusal(
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", 32768
    ),
    "cohere": Refusal(
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5105. Try using a shorter prompt, "
        "or enabling prompt truncating.",
        4081,
    ),
    "cohere, of a chat": Refusal(
        "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs.", None
    ),
    "fireworks": Refusal("The prompt is too long: 10240, model maximum context length: 8191", 8191),
    "together": Refusal(
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32769. Given: 40000 `inputs` tokens and 512 "
        "`max_new_tokens`",
        32769,
        422,
    ),
    "moonshot": Refusal("Invalid request: Your request exceeded model token limit: 131072", 131072),
    "minimax": Refusal("invalid params, context window exceeds limit (2013)", None),  # the number of the error
    "z.ai": Refusal("Prompt exceeds max length", None),
    "dashscope": Refusal("Range of input length should be [1, 30720]", 30720),
    "copilot": Refusal("prompt token count of 93854 exceeds the limit of 90000", 90000),
    "llama-server": Refusal(
        "the request exceeds the available context size (4096 tokens), try increasing the context size", 4096
    ),
    "ollama": Refusal("prompt too long; exceeded max context length by 512 tokens", None),
    "lm studio": Refusal(
        "Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context length of "
        "only 7866 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input",
        7866,
    ),
    "lm studio, of mlx": Refusal("Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)", 7424),
}
OTHERS = {
    "Too many tokens, please wait before trying again.": 429,
    "Tool argument validation failed: input length exceeds 1000 characters": 400,
    "max_tokens is too large: 20000. This model supports at most 16384 completion tokens.": 400,
}


@pytest.mark.parametrize("provider", REFUSALS)
def test_refusal_of_a_provider_is_a_request_that_is_too_long_and_shows_the_window(provider: str) -> None:
    refusal = REFUSALS[provider]
    target = Target("home", "m", WireProfile(family="home", path="/", names=NameRules()))
    wires = (anthropic, bedrock_converse, ollama, openai_chat, openai_responses)
    for rules in (*(wire.tables.ERRORS for wire in wires), GOOGLE_ERRORS):
        error = lm_error(ErrorBody(refusal.status, refusal.text), rules, target)
        assert isinstance(error, ContextWindowExceededError)
        assert window_in_text(str(error)) == refusal.window


@pytest.mark.parametrize("text", OTHERS)
def test_refusal_of_another_kind_is_no_request_that_is_too_long(text: str) -> None:
    target = Target("home", "m", WireProfile(family="home", path="/", names=NameRules()))
    assert not isinstance(
        lm_error(ErrorBody(OTHERS[text], text), openai_chat.tables.ERRORS, target), ContextWindowExceededError
    )
