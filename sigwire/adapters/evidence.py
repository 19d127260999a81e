"""Evidence in an answer: distributions read from the tokens of its text, or written as one more output. Pure.

    read_logprobs(plan, choice, outputs)   from the log probabilities of tokens, at the places where the layout reads the values
    stated_signature(signature, outputs)   the signature with an output for probabilities
    read_stated(value, output)             the probabilities that the model wrote there

Tokens are compared as bytes without white space. At the first token of a value, and at each further one, the alternatives are
cut to the beginning that was written and matched with the labels that still fit. The probability of an alternative that fits
one label is that label's; if it fits several it is divided equally, and ``coverage`` does not count it.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeGuard

from sigwire.adapters.values.json_places import places_in_json
from sigwire.core.evidence import index_of, label_of, normalized
from sigwire.core.json import JsonObject, dumps
from sigwire.core.narrow import is_array, is_object
from sigwire.core.record import UNSET
from sigwire.signatures.declarations import OutputField
from sigwire.signatures.signature import SignatureClass

if TYPE_CHECKING:
    from sigwire.adapters.plan import Plan
    from sigwire.core.response import Choice
    from sigwire.signatures.criteria import DecidingOutput

__all__ = ["LabelReading", "read_logprobs", "read_stated", "stated_name", "stated_signature"]


class LabelReading(NamedTuple):
    """The distribution of an output, or the reason why it has none. ``repair``: what had to be changed to read it.

    ``answered``: what the backend itself answered, ``confidence``: its own, by its own formula.
    """

    probabilities: tuple[float, ...] = ()
    coverage: float = 1.0
    problem: str = ""
    repair: str = ""
    answered: Any = UNSET
    confidence: float | None = None


# --- log probabilities of tokens ---------------------------------------------------------------------


class _AnswerTokens:
    """The tokens of an answer, and where each ends in its bytes. Alternatives are read at the values of outputs only."""

    def __init__(self, logprobs: object) -> None:
        content = logprobs.get("content") if is_object(logprobs) else None
        self._data: Sequence[Any] = content if is_array(content) else ()
        self._alternatives: dict[int, Mapping[bytes, float]] = {}
        self.texts = [_bytes_of(each) for each in self._data]
        self.ends = [*accumulate(map(len, self.texts))]

    def alternatives(self, number: int) -> Mapping[bytes, float]:
        """Return the probabilities at a token by text, that of the token itself included."""
        found = self._alternatives.get(number)
        if found is None:
            found = self._alternatives[number] = self._read_alternatives(number)
        return found

    def _read_alternatives(self, number: int) -> Mapping[bytes, float]:
        token = self._data[number]
        listed = token.get("top_logprobs") if is_object(token) else None
        found = {_bytes_of(other): _probability(other) for other in (listed if is_array(listed) else ())}
        found.setdefault(self.texts[number], _probability(token))
        return found


def read_logprobs(
    plan: Plan, choice: Choice, outputs: Sequence[DecidingOutput], values: Mapping[str, Any]
) -> dict[str, LabelReading]:
    """Return the distribution of each output in the tokens of an answer, by path. ``values``: what was read."""
    tokens = _AnswerTokens(choice.logprobs)
    text = choice.text.encode()
    if not tokens.texts or not b"".join(tokens.texts).startswith(text):
        why = "the answer has other text than its tokens" if tokens.texts else "the answer has no log probabilities"
        return {output.path: LabelReading(problem=why) for output in outputs}
    places = plan.places(choice.text)
    return {output.path: _read(output, tokens, choice.text, text, places, values[output.path]) for output in outputs}


def _bytes_of(token: Any) -> bytes:
    if not is_object(token):
        return b""
    raw = token.get("bytes")
    if is_array(raw):
        with suppress(TypeError, ValueError):  # a member that is no byte
            return bytes(raw)
    return str(token.get("token") or "").encode()


def _probability(token: Any) -> float:
    found = token.get("logprob") if is_object(token) else None
    return math.exp(min(float(found), 0.0)) if isinstance(found, int | float) else 0.0


def _read(
    output: DecidingOutput,
    tokens: _AnswerTokens,
    text: str,
    encoded: bytes,
    places: Mapping[str, tuple[int, int]],
    value: object,
) -> LabelReading:
    place = places.get(output.steps[0])
    nested = output.keys[1:]
    json = places_in_json(text, place[0]) if place is not None and (nested or output.member is not UNSET) else {}
    if nested or output.member is not UNSET:
        place = json.get(nested)
    if place is None:
        return LabelReading(problem="its place in the answer is unknown")
    if output.member is not UNSET:
        elements = [
            json[(*nested, number)] for number in range(sum(1 for key in json if key[:-1] == nested and _is_int(key)))
        ]
        return _read_member(output, tokens, text, encoded, place, elements)
    if output.kind == "score" and isinstance(value, float) and value.is_integer():
        value = int(value)
    start, end = (len(text[:at].encode()) for at in place)
    labels = [_label(output.kind, each) for each in output.values]
    written = _squeeze(encoded[start:end])
    if [at for at, label in enumerate(labels) if label.equals(written)] != [index_of(output.values, value)]:
        return LabelReading(problem="its text in the answer is no label")
    masses, coverage = _masses(tokens, encoded, start, end, labels)
    found = normalized(masses)
    return LabelReading(problem="no token fits a label") if found is None else LabelReading(found, min(coverage, 1.0))


def _is_int(key: tuple[object, ...]) -> bool:
    return bool(key) and isinstance(key[-1], int)


def _read_member(
    output: DecidingOutput,
    tokens: _AnswerTokens,
    text: str,
    encoded: bytes,
    place: tuple[int, int],
    elements: Sequence[tuple[int, int]],
) -> LabelReading:
    """Return the probability that a list has a member: not left out at each place where an element or the end could stand."""
    members = output.siblings
    wanted = _index(members, output.member)
    ends = [place[0], *(end for _, end in elements), place[1]]
    absent, coverage = 1.0, 1.0
    for number, (before, after) in enumerate(pairwise(ends)):
        opening, closing = ("[", "[]") if number == 0 else (",", "]")
        texts = [_squeeze(f"{opening}{dumps(_plain(member))}".encode()) for member in members]
        mark = _LabelForm(closing.encode(), is_mark=True)
        labels = [_Label([form]) for form in (*map(_LabelForm, texts), mark)]
        start, end = len(text[:before].encode()), len(text[:after].encode())
        masses, covered = _masses(tokens, encoded, start, end, labels)
        shares = normalized(masses)
        if shares is None:
            return LabelReading(problem="no token fits a member")
        absent *= 1 - shares[wanted]
        coverage = min(coverage, covered)
    return LabelReading((1 - absent, absent), min(coverage, 1.0))


def _index(values: Sequence[object], value: object) -> int:
    found = index_of(values, value)
    assert found is not None
    return found


def _plain(value: object) -> object:
    return getattr(value, "value", value)


class _LabelForm(NamedTuple):
    """A text that stands for a value, without white space. ``folds``: in any case; ``is_mark``: no letter can follow it."""

    text: bytes
    folds: bool = False
    is_mark: bool = False

    def equals(self, written: bytes) -> bool:
        return self.text == (written.lower() if self.folds else written)

    def ends(self, written: bytes) -> bool:
        """Return True if a text that begins with this one has it as a whole."""
        return self.is_mark or self.text.endswith(b'"') or bool(_ENDS.match(written[len(self.text) :]))


class _Label:
    """The forms of a value, also by their first letter: most alternatives of a token begin like none."""

    def __init__(self, forms: Sequence[_LabelForm]) -> None:
        self._forms = forms
        self._empty = [form for form in forms if not form.text]  # the label is white space
        self._by_head: dict[bytes, list[_LabelForm]] = {}
        for form in forms:
            self._by_head.setdefault(form.text[:1].lower(), [*self._empty]).append(form)

    def equals(self, written: bytes) -> bool:
        return any(form.equals(written) for form in self._forms)

    def fits(self, written: bytes, folded: bytes) -> bool:
        """Return True if the value may go on from ``written``, or if ``written`` has it as a whole."""
        if not written:
            return True
        for form in self._by_head.get(folded[:1], self._empty):
            given = folded if form.folds else written
            if form.text.startswith(given) or (given.startswith(form.text) and form.ends(given)):
                return True
        return False


_ENDS = re.compile(rb"(?![A-Za-z0-9_\-\x80-\xff]|\.[0-9])")
_BOOL_LABELS = {
    value: _Label([_LabelForm(form.encode(), folds=True) for word in words.split() for form in (word, f'"{word}"')])
    for value, words in ((True, "true yes y t on 1"), (False, "false no n f off 0"))
}


def _label(kind: str, value: object) -> _Label:
    return _BOOL_LABELS[value] if isinstance(value, bool) else _Label([*_forms_of(kind, value)])


def _forms_of(kind: str, value: object) -> Iterator[_LabelForm]:
    if value is None:
        yield from (_LabelForm(b"null"), _LabelForm(b"None"), _LabelForm(b'"null"'))
    elif kind == "score":
        yield from (_LabelForm(f"{value}".encode()), _LabelForm(f"{value}.0".encode()))
    else:
        label = label_of(value)
        yield _LabelForm(_squeeze(label.encode()))
        if isinstance(_plain(value), str):
            yield _LabelForm(_squeeze(dumps(label).encode()))


def _squeeze(text: bytes) -> bytes:
    return b"".join(text.split())


def _masses(
    tokens: _AnswerTokens, text: bytes, start: int, end: int, labels: Sequence[_Label]
) -> tuple[list[float], float]:
    """Return the mass of each label for the value in ``text[start:end]``, and the mass that fitted one label alone."""
    masses, covered, carried = [0.0] * len(labels), 0.0, 1.0
    fitting = list(range(len(labels)))
    for number in range(bisect_right(tokens.ends, start), len(tokens.ends)):
        token, token_end = tokens.texts[number], tokens.ends[number]
        if not token:
            continue
        token_start, alternatives = token_end - len(token), tokens.alternatives(number)
        lead = token[: max(start - token_start, 0)]
        written = text[start : max(start, token_start)]
        for other, probability in alternatives.items():
            rest = _without_lead(other, lead)
            found = [] if rest is None else _fitting(_squeeze(written + rest), labels, fitting)
            if other == token and len(found) > 1 and token_start < end:
                continue  # the written text goes on
            for at in found:
                masses[at] += carried * probability / len(found)
            covered += carried * probability if len(found) == 1 else 0.0
        fitting = _fitting(_squeeze(text[start:token_end]), labels, fitting)
        if len(fitting) < 2 or token_start >= end:
            return masses, covered
        carried *= alternatives[token]
    whole = _squeeze(text[start:end])
    complete = [at for at in fitting if labels[at].equals(whole)] or fitting
    for at in complete:  # the text ended before another label could
        masses[at] += carried / len(complete)
    return masses, covered


def _without_lead(token: bytes, lead: bytes) -> bytes | None:
    """Return a token without the text in front of the value; ``None`` if it begins otherwise. White space may differ."""
    if token.startswith(lead):
        return token[len(lead) :]
    token, lead = _squeeze(token), _squeeze(lead)
    if token.startswith(lead):
        return token[len(lead) :]
    return b"" if lead.startswith(token) else None


def _fitting(written: bytes, labels: Sequence[_Label], among: Sequence[int]) -> list[int]:
    folded = written.lower()
    return [at for at in among if labels[at].fits(written, folded)]


# --- stated ------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def stated_signature(signature: SignatureClass, outputs: tuple[DecidingOutput, ...]) -> SignatureClass:
    """Return the signature with a last output for the probabilities of these outputs."""
    from pydantic import WithJsonSchema

    kind: Any = Annotated[dict[str, Any], WithJsonSchema(_stated_schema(outputs))]
    desc = "How probable each value is, from 0 to 1, as you would bet. A single number is the probability of true."
    extended: SignatureClass = signature.append(stated_name(signature), OutputField(desc=desc), kind)
    return extended.with_instructions(signature.instructions)


def stated_name(signature: SignatureClass) -> str:
    """Return the name of the output for probabilities: ``evidence_``, with more underscores if the signature has it."""
    name = "evidence_"
    while name in signature.spec.by_name:
        name += "_"
    return name


def _stated_schema(outputs: Sequence[DecidingOutput]) -> JsonObject:
    number: JsonObject = {"type": "number"}
    members: dict[str, JsonObject] = {}
    for output in outputs:
        labels = dict.fromkeys(output.labels, number)
        members[output.path] = number if output.kind == "bool" else _object_schema(labels)
    return _object_schema(members)


def _object_schema(members: Mapping[str, JsonObject]) -> JsonObject:
    return {"type": "object", "properties": {**members}, "required": [*members], "additionalProperties": False}


def read_stated(given: object, output: DecidingOutput) -> LabelReading:
    """Return the distribution of an output in what the model stated.

    >>> from sigwire.signatures.criteria import DecidingOutput
    >>> read_stated({"urgent": 0.75}, DecidingOutput("urgent", "bool", (True, False))).probabilities
    (0.75, 0.25)
    """
    found = given.get(output.path) if is_object(given) else None
    if output.kind == "bool" and _is_probability(found):
        return LabelReading((float(found), 1 - float(found)))
    if not is_object(found) or not found:
        return LabelReading(problem=f"the model stated {_short(found)}")
    names = [label for label, _ in output.criteria.levels] if output.criteria is not None else []
    masses = [0.0] * len(output.values)
    for label, mass in found.items():
        position = index_of(output.values, label)
        if position is None and label in names:
            position = names.index(label)
        if position is None or isinstance(mass, bool) or not isinstance(mass, int | float):
            return LabelReading(problem=f"the model stated {_short(mass)} for {_short(label)}")
        masses[position] += mass
    shares = normalized(masses)
    if shares is None:
        return LabelReading(problem="the stated probabilities are negative, not finite or all 0")
    total = math.fsum(masses)
    return LabelReading(
        shares, repair="" if abs(total - 1) < 1e-6 else f"stated probabilities of sum {total:.3g} were normalized"
    )


def _is_probability(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _short(value: object) -> str:
    return "nothing" if value is None else f"{value!r:.60}"
