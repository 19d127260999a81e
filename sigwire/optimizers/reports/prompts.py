"""The prompts of a winner: instructions and demos of each predictor, as the model reads them."""

from __future__ import annotations

from sigwire.core.example import Example
from sigwire.core.json import JsonObject
from sigwire.evaluate.calls import written_messages
from sigwire.modules.module import Module
from sigwire.optimizers.candidate import Candidate, applied
from sigwire.settings import context, current

__all__ = ["winner_prompts"]


def winner_prompts(student: Module, winner: Candidate, model: object) -> dict[str, tuple[JsonObject, ...]]:
    """Return the first messages of each predictor to which the winner gives demos: those that all of its calls share.

    ``model``: the one that the search asked, by default that of the settings. A predictor whose request cannot be formatted
    with the inputs of its first demo is left out, and one whose calls have demos of their own. No model is called.
    """
    program = applied(student, winner)
    found: dict[str, tuple[JsonObject, ...]] = {}
    with context(lm=model or current().lm):
        for name, predictor in program.named_predictors():
            demos = winner.demos.get(name)
            if not demos or getattr(predictor, "nearest", None) is not None:
                continue  # with nearest demos each call has others, which a vectorizer of the user chooses
            try:
                request = predictor.preview(**Example.from_json(demos[0].data).inputs()).request
            except Exception:  # a demo without some inputs, a class of the user: the page shows the fields
                continue
            shared = request.messages[: max(request.repeated, default=0)]
            found[name] = written_messages(program, shared)
    return found
