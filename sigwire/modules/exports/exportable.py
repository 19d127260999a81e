"""``Exportable``: the method ``export`` of programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from sigwire.core.json import JsonObject

if TYPE_CHECKING:
    from sigwire.lm.preview.preview import Preview
    from sigwire.modules.exports.forms import ExportForm

__all__ = ["Exportable"]


class Exportable:
    """The exports of a program."""

    if TYPE_CHECKING:

        def preview(self, *args: Any, **kwargs: Any) -> Preview: ...

    @overload
    def export(self, form: Literal["openai"], /, *args: Any, **inputs: Any) -> JsonObject: ...
    @overload
    def export(self, form: Literal["messages"], /, *args: Any, **inputs: Any) -> list[JsonObject]: ...
    @overload
    def export(self, form: Literal["markdown"], /, *args: Any, **inputs: Any) -> str: ...
    def export(self, form: ExportForm, /, *args: Any, **inputs: Any) -> JsonObject | list[JsonObject] | str:
        """Return the first request of a call as data, for code without sigwire. Nothing is sent.

        "openai": the JSON body that the call sends to an OpenAI endpoint. "messages": its messages, as dicts with role and
        content. "markdown": a page for people. An input that is not given is a placeholder: ``{question}`` in the place of a
        text, ``"{k}"`` in the place of other JSON. Secrets are ``***``. Also takes ``lm=``, ``demos=`` and ``config=``.

        Raises ``ConfigurationError`` if the model is not reached over a wire of OpenAI ("openai").

        >>> from sigwire.lm.client import LM
        >>> from sigwire.modules.predict import Predict
        >>> predict = Predict("question -> answer", lm=LM("openai/gpt-4.1-mini"), temperature=0.0)
        >>> body = predict.export("openai", question="2+2?")
        >>> body["model"], body["temperature"], [message["role"] for message in body["messages"]]
        ('gpt-4.1-mini', 0.0, ['system', 'user'])
        >>> "{question}" in predict.export("messages")[-1]["content"]
        True
        """
        from sigwire.modules.exports.forms import exported

        return exported(self, form, args, inputs)
