"""The forms of an export, made of a preview; and the placeholders of inputs that are not given."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, Protocol, TypeAlias, cast
from urllib.parse import urlsplit

from sigwire.core.json import JsonObject
from sigwire.errors import ConfigurationError, suggest
from sigwire.lm.openai_dicts import encode_messages
from sigwire.lm.preview.preview import Preview
from sigwire.lm.secrets import mask_secrets
from sigwire.modules.tree.walk import Predictor
from sigwire.settings import context
from sigwire.show.cleaning import inline
from sigwire.signatures.fields import FieldSpec
from sigwire.signatures.signature import SignatureMeta

__all__ = ["ExportForm", "PreviewingProgram", "exported", "placeholders"]

ExportForm: TypeAlias = Literal["openai", "messages", "markdown"]

_CHAT, _RESPONSES = "/chat/completions", "/responses"


class PreviewingProgram(Protocol):
    """The part of a program that an export uses."""

    def preview(self, /, *args: Any, **kwargs: Any) -> Preview: ...


def exported(
    program: PreviewingProgram, form: ExportForm, args: tuple[object, ...], inputs: Mapping[str, object]
) -> JsonObject | list[JsonObject] | str:
    """Return the first request of a call in a form of ``Module.export``."""
    encode = _FORMS.get(form)
    if encode is None:
        raise ConfigurationError(
            f"{form!r} is no form of an export (exporting {type(program).__name__}). "
            f"{suggest(str(form), _FORMS)}Write one of {', '.join(_FORMS)}."
        )
    open_inputs = {} if args else {name: text for name, text in placeholders(program).items() if name not in inputs}
    with context(warn_on_type_mismatch=False):
        preview = program.preview(*args, **open_inputs, **inputs)
    if preview.errors:
        raise preview.errors[0]
    return encode(preview)


# --- forms -------------------------------------------------------------------------------------------


def _openai(preview: Preview) -> JsonObject:
    if _path_of(preview) not in (_CHAT, _RESPONSES):
        raise ConfigurationError(
            f"{preview.model} is not reached over a wire of OpenAI (exporting a request). "
            'Pass lm=LM("openai/..."), or export "messages".'
        )
    return _body(preview)


def _messages(preview: Preview) -> list[JsonObject]:
    if _path_of(preview) == _CHAT:
        return cast("list[JsonObject]", _body(preview)["messages"])
    return encode_messages(preview.request.messages)


def _markdown(preview: Preview) -> str:
    return "\n\n".join(_sections(preview)) + "\n"


_FORMS: Mapping[str, Callable[[Preview], JsonObject | list[JsonObject] | str]] = {
    "openai": _openai, "messages": _messages, "markdown": _markdown,
}  # fmt: skip


def _path_of(preview: Preview) -> str | None:
    """Return the end of the URL that names a wire of OpenAI, or ``None``."""
    path = urlsplit(str((preview.wire or {}).get("url") or "")).path
    return next((end for end in (_CHAT, _RESPONSES) if path.endswith(end)), None)


def _body(preview: Preview) -> JsonObject:
    """Return the body, without secrets, as a value of its own."""
    body: JsonObject = json.loads(json.dumps((preview.wire or {})["body"]))
    return body


def _sections(preview: Preview) -> Iterator[str]:
    request = preview.request
    yield f"# Request to {inline(preview.model)}"
    for number, message in enumerate(encode_messages(request.messages), 1):
        content = message.pop("content")
        yield f"## {number}. {message.pop('role')}"
        if content:
            yield _fenced(content) if isinstance(content, str) else _fenced_json(content)
        if message:
            yield _fenced_json(message)
    parts: Mapping[str, object] = {
        "Tools": list(request.tools),
        "Answer": request.response_format.schema if request.response_format is not None else None,
        "Options": mask_secrets(request.options),
    }
    for title, part in parts.items():
        if part:
            yield f"## {title}"
            yield _fenced_json(part)


def _fenced_json(value: object) -> str:
    return _fenced(json.dumps(value, ensure_ascii=False, indent=2, default=repr), "json")


def _fenced(text: str, language: str = "text") -> str:
    """Return a text in a fence that is longer than each fence inside the text.

    >>> print(_fenced("```x```"))
    ````text
    ```x```
    ````
    """
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
    return f"{fence}{language}\n{text}\n{fence}"


# --- placeholders ------------------------------------------------------------------------------------


def placeholders(program: object) -> dict[str, str]:
    """Return a placeholder for each input without a default. Media, tools and a history have none.

    >>> from sigwire.modules.predict import Predict
    >>> placeholders(Predict("question, k: int, history: History -> answer"))
    {'question': '{question}', 'k': '{k}'}
    """
    return {name: f"{{{name}}}" for name in _open_inputs(program)}


def _open_inputs(program: object) -> list[str]:
    signature = getattr(program, "signature", None)
    if isinstance(signature, SignatureMeta):
        return _fillable(signature.spec.inputs)
    entry = _users_entry(program)
    if entry is not None:
        parameters = inspect.signature(entry).parameters.values()
        return [each.name for each in parameters if each.default is each.empty and each.kind in _NAMED]
    predictors: list[Any] = getattr(program, "predictors", list[Predictor])()
    return _fillable(predictors[0].signature.spec.inputs) if predictors else []


_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _fillable(fields: Iterable[FieldSpec]) -> list[str]:
    roles = ("tools", "history", "media")
    return [field.name for field in fields if field.role not in roles and not field.has_default]


def _users_entry(program: object) -> Callable[..., object] | None:
    """Return the entry that the class of a user defines."""
    for cls in type(program).__mro__:
        if cls.__module__.startswith("sigwire.") and cls.__name__ in ("Module", "StepsModule"):
            return None
        for name in ("forward", "aforward"):
            if name in vars(cls):
                return cast("Callable[..., object]", getattr(program, name))
    return None
