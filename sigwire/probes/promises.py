"""The promise of the provider table about a probe, and the request that asks for it all the same if the table denies it.

The encoder knows: it refuses or approximates what capabilities, facts and profile deny. So a preview of the request
decides, and no rule of the table is read twice. A denied request is made again with the capabilities set, and last by
``extra_body``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from sigwire.core.json import JsonObject
from sigwire.core.request import Request
from sigwire.lm.client import LM
from sigwire.lm.preview.preview import Preview
from sigwire.probes.decisions import probes_of
from sigwire.probes.questions import CLOCK
from sigwire.probes.table import Probe, text_request

__all__ = ["Planned", "plan_probe", "quiet_options"]

_DENIALS = frozenset({"tools", "tool_choice", "parallel_tool_calls", "response_format"})
"""The features of warnings that mean: another request than this one is sent."""

_RAW: Mapping[str, Mapping[str, JsonObject]] = {
    "/chat/completions": {
        "forced": {"tool_choice": "required"},
        "named": {"tool_choice": {"type": "function", "function": {"name": CLOCK}}},
    },
    "/responses": {
        "forced": {"tool_choice": "required"},
        "named": {"tool_choice": {"type": "function", "name": CLOCK}},
    },
    "/messages": {
        "forced": {"tool_choice": {"type": "any"}},
        "named": {"tool_choice": {"type": "tool", "name": CLOCK}},
    },
    "/converse": {
        "forced": {"toolConfig": {"toolChoice": {"any": {}}}},
        "named": {"toolConfig": {"toolChoice": {"tool": {"name": CLOCK}}}},
    },
}
"""By the end of a URL and the probe: the members of a body that the encoder left out."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A probe of a model. ``promised``: by the table. ``why_not``: why it cannot be asked, "" if it can.

    ``ceiling``: the price of its requests in dollars at most; ``None`` if no price is known.
    """

    name: str
    probe: Probe
    lm: LM
    request: Request
    promised: bool
    why_not: str = ""
    ceiling: float | None = None

    def times(self, repeat: int) -> int:
        """Return how often it is asked without a disagreement; a behaviour is counted."""
        return 0 if self.why_not else repeat if self.probe.is_behaviour and self.probe.then is None else 1


def quiet_options(lm: LM) -> JsonObject:
    """Return the options of most probes: a small limit, and no thinking, which would use the limit up."""
    if lm.capabilities.decides == "only":
        return {}
    if not lm.capabilities.reasoning:
        return {"max_tokens": 512}
    preview = lm.preview(text_request(options={"reasoning": "off"}))
    if preview.errors:
        return {"max_tokens": 2048}
    return {"max_tokens": 2048 if preview.warnings else 512, "reasoning": "off"}


def plan_probe(name: str, lm: LM, options: JsonObject) -> Planned:
    """Return what the table promises, and the request."""
    probe = probes_of(lm.capabilities)[name]
    request = probe.request.with_options({**options, **probe.request.options})
    asked = lm if probe.change is None else probe.change(lm)
    able = lm.capabilities
    needs = probe.needs.split()
    missing = [each for each in needs if not getattr(able, each)]
    preview = asked.preview(request)
    if (denial := _denial(name, preview)) and probe.instead is not None:
        request = probe.instead.with_options(request.options)
        preview = asked.preview(request)
        denial = _denial(name, preview)
    promised = not missing and not denial and not (probe.lacks and getattr(able, probe.lacks))
    if denial or missing:
        asked = lm.copy(capabilities=replace(able, **cast("dict[str, Any]", dict.fromkeys(needs, True))))
        preview = asked.preview(request)
        if denial := _denial(name, preview):
            url = str((preview.wire or {}).get("url", ""))
            raw = next((by_name.get(name) for end, by_name in _RAW.items() if url.endswith(end)), None)
            if raw is None or preview.errors:
                return Planned(name, probe, asked, request, promised, denial)
            request = request.with_options({**request.options, "extra_body": raw})
    # The output of decisions costs nothing, and has no limit.
    most = preview.price if able.decides == "only" else preview.ceiling
    ceiling = most if probe.error is None else 0.0
    return Planned(name, probe, asked, request, promised, "", None if ceiling is None else ceiling * probe.requests)


def _denial(name: str, preview: Preview) -> str:
    """Return why the encoder sends another request, or none; "" if it sends this one."""
    if preview.errors:
        return str(preview.errors[0])
    denials = {*_DENIALS, "reasoning"} if name == "thinking_off" else _DENIALS
    return next((each.detail for each in preview.warnings if each.feature in denials), "")
