"""Names of options: those of every wire, and aliases that other libraries and the providers use."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sigwire.core.json import JsonValue
from sigwire.errors import InputError

__all__ = ["ALIASES", "COMMON_OPTIONS", "OPTION_NAMES", "canonical_options"]

COMMON_OPTIONS = frozenset(
    "cache extra_body extra_headers fresh max_completion_tokens max_output_tokens max_tokens n prompt_cache reasoning "
    "reasoning_effort rollout_id seed stop strict_history strict_window temperature thinking top_p".split()
)
"""Options that every wire knows, aliases included."""

OPTION_NAMES = COMMON_OPTIONS | frozenset(
    "allowed_token_ids bad_words cache_prompt cached_content chat_template chat_template_kwargs "
    "context_length_exceeded_behavior frequency_penalty grammar guardrail_config guided_choice guided_grammar guided_json "
    "guided_regex ignore_eos include_reasoning include_stop_str_in_output keep_alive length_penalty logit_bias logprobs "
    "metadata min_p min_tokens mirostat mirostat_eta mirostat_tau models n_probs num_ctx plugins prediction presence_penalty "
    "priority prompt_logprobs prompt_mode prompt_truncate_len provider reasoning_format repeat_last_n repeat_penalty "
    "repetition_penalty route safe_prompt safety_identifier safety_model safety_settings samplers search_parameters "
    "service_tier shift skip_special_tokens stop_token_ids structured_outputs top_a top_k top_logprobs transforms truncate "
    "ttl typical_p user verbosity web_search_options".split()
)
"""Options that some wire knows. The tables of the wires decide; this list spares their import."""


def canonical_options(options: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return the options by their canonical names. An option that is ``None`` counts as not given.

    Raises ``InputError`` for an option given by two of its names, and for a ``thinking`` of another form.

    >>> canonical_options({"max_completion_tokens": 50, "reasoning_effort": "none", "seed": 1})
    {'max_tokens': 50, 'reasoning': 'off', 'seed': 1}
    """
    if options.keys().isdisjoint(_ALIASES):
        return options
    canonical: dict[str, JsonValue] = {}
    for given, value in options.items():
        name, convert = _ALIASES.get(given, (given, None))
        if value is None:
            continue
        if name in canonical:
            same = " and ".join(sorted(other for other in options if _ALIASES.get(other, (other,))[0] == name))
            raise InputError(f"The option {name} was given twice, as {same}. Leave one of them out.")
        canonical[name] = convert(value) if convert else value
    return canonical


def _thinking(value: JsonValue) -> JsonValue:
    match value:
        case {"type": "disabled"}:
            return "off"
        case {"type": "enabled", "budget_tokens": int(budget)}:
            return {"budget": budget}
        case _:
            raise InputError(
                f'thinking is {{"type": "enabled", "budget_tokens": n}} or {{"type": "disabled"}}, not {value!r:.80}. '
                'Or use reasoning: "high", {"budget": n}, "off".'
            )


_ALIASES: Mapping[str, tuple[str, Callable[[JsonValue], JsonValue] | None]] = {
    "max_completion_tokens": ("max_tokens", None),
    "max_output_tokens": ("max_tokens", None),
    "reasoning_effort": ("reasoning", lambda effort: "off" if effort == "none" else effort),
    "thinking": ("reasoning", _thinking),
}
ALIASES = frozenset(_ALIASES)
