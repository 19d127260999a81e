"""Candidates: what an optimizer learns about a program, as data, and its application to a copy of the program.

A text of a program has a name, its slot; the names of predictors are those of ``program.named_predictors()``
(see ``tunable``):

    <predictor>.instructions                   the task of the signature
    <predictor>.fields.<field>.desc            the description of an input or output
    <predictor>.fields.<path>.criteria.<label>  when a value of an output applies
    <predictor>.tools.<tool>.desc              the description of a tool that the predictor offers
    <predictor>.tools.<tool>.args.<argument>   the description of an argument
    <predictor>.tools.<tool>.alias             the name of the tool for the model

Numbers have slots as well:

    <predictor>.decisions.<path>               the rule of an output (``DecisionRule``)
    <cascade>.least                            the least confidence of each stage

A candidate has only what it changes. A slot, a predictor or an option that it lacks is as in the student.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Self, TypeAlias, TypeVar, cast

from sigwire.core.evidence import DecisionRule
from sigwire.core.example import Example
from sigwire.core.json import JsonObject, JsonValue, Value, decode_fields
from sigwire.core.narrow import is_mapping
from sigwire.core.tools.texts import ToolText
from sigwire.core.tools.tool import Tool
from sigwire.errors import ConfigurationError, StateError, suggest
from sigwire.journal.packing import digest_of
from sigwire.modules.agents.react import ReAct
from sigwire.modules.cascade import Cascade
from sigwire.modules.module import Module
from sigwire.modules.tool_texts import alias_problem
from sigwire.show.card import BoundedRepr
from sigwire.signatures.criteria import criteria_texts
from sigwire.signatures.fields import SignatureSpec

__all__ = ["Candidate", "Demo", "Slot", "applied", "candidate_of", "cascades_of", "check_text", "slots", "tunable"]

M = TypeVar("M", bound=Module)

Slot: TypeAlias = str
"""The name of a text of a program."""

_FAMILIES = frozenset({"instructions", "fields", "tools", "tool_names", "demos", "decisions"})
_DEFAULT_FAMILIES = frozenset({"instructions", "fields", "tools", "demos"})
_MOST_CHARACTERS = 1024
"""OpenAI's limit for the description of a tool, the lowest of the providers."""


@dataclass(frozen=True, slots=True)
class Demo(Value):
    """A demo of a predictor: the JSON of an ``Example``, and the id of the row of the data set that it is from.

    >>> demo = Demo(Example(question="2+2?", answer="4").to_json(), row="r1")
    >>> demo.fields["answer"], demo.augmented
    ('4', False)
    """

    data: JsonObject
    row: str = ""

    @property
    def fields(self) -> JsonObject:
        """The fields of the example."""
        return cast(JsonObject, self.data["fields"])

    @property
    def augmented(self) -> bool:
        """Whether a run made the outputs; otherwise they are the labels of the row."""
        return bool(self.fields.get("augmented"))

    @property
    def digest(self) -> str:
        """The SHA-256 of the data and the row."""
        return digest_of(self.to_json())

    def __hash__(self) -> int:
        return hash(self.digest)


@dataclass(frozen=True, eq=False)
class Candidate(BoundedRepr):
    """Texts by slot, demos by predictor, and options of requests, which replace those of a student.

    ``parents``: the digests of the candidates that this one was made from; no part of the digest and of comparisons. Demos
    of ``()`` remove those of the student. ``lm_options`` are merged into the ``config`` of every predictor. ``choices``: the
    label of what was chosen, by name ("model", "adapter", an option of requests). ``chosen`` has the values, which are no part
    of the digest and of the JSON, so that no key is saved. ``numbers``: the rules of outputs and the least confidences of
    cascades, as JSON, by slot.

    >>> first = Candidate().with_text("answer.instructions", "Be brief.")
    >>> first == Candidate({"answer.instructions": "Be brief."}), first.parents == (Candidate().digest,)
    (True, True)
    """

    texts: Mapping[Slot, str] = field(default_factory=dict[str, str])
    demos: Mapping[str, tuple[Demo, ...]] = field(default_factory=dict[str, "tuple[Demo, ...]"])
    lm_options: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    parents: tuple[str, ...] = ()
    choices: Mapping[str, str] = field(default_factory=dict[str, str])
    chosen: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False, compare=False)
    numbers: Mapping[Slot, JsonValue] = field(default_factory=dict[str, JsonValue])

    def __post_init__(self) -> None:
        for name in ("texts", "demos", "lm_options", "choices", "chosen", "numbers"):
            object.__setattr__(self, name, dict(getattr(self, name)))

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of texts, demos, options, choices and numbers. The order in which they were added does not matter."""
        content = self.to_json()
        content.pop("parents", None)
        return digest_of(content)

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Candidate) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def with_text(self, slot: Slot, text: str, *parents: str) -> Candidate:
        """Return the candidate with a text. ``parents`` are digests, by default that of this candidate."""
        return replace(self, texts={**self.texts, slot: text}, parents=parents or (self.digest,))

    def with_demos(self, predictor: str, demos: Iterable[Demo], *parents: str) -> Candidate:
        """Return the candidate with the demos of a predictor. ``parents`` are digests, by default that of this candidate."""
        return replace(self, demos={**self.demos, predictor: tuple(demos)}, parents=parents or (self.digest,))

    def with_lm_options(self, options: Mapping[str, JsonValue], *parents: str) -> Candidate:
        """Return the candidate with more options. ``parents`` are digests, by default that of this candidate."""
        return replace(self, lm_options={**self.lm_options, **options}, parents=parents or (self.digest,))

    def with_choice(self, name: str, label: str, value: object, *parents: str) -> Candidate:
        """Return the candidate with a choice. ``parents`` are digests, by default that of this candidate."""
        made = replace(self, choices={**self.choices, name: label}, chosen={**self.chosen, name: value})
        return replace(made, parents=parents or (self.digest,))

    def with_numbers(self, numbers: Mapping[Slot, JsonValue], *parents: str) -> Candidate:
        """Return the candidate with more numbers. ``parents`` are digests, by default that of this candidate."""
        return replace(self, numbers={**self.numbers, **numbers}, parents=parents or (self.digest,))

    @property
    def summary(self) -> str:
        """A description of the candidate in a few words.

        >>> Candidate().summary, Candidate(demos={"self": ()}).summary
        ('as the student', 'no demos')
        >>> demos = [Demo({"fields": {"augmented": True}}), Demo({"fields": {}})]
        >>> Candidate({"self.instructions": "Be brief."}, {"self": demos}).summary
        'new self.instructions, bootstrapped 1, labeled 1'
        >>> Candidate(numbers={"self.decisions.urgent": {"threshold": 0.8}}).summary
        'self.decisions.urgent threshold=0.8'
        """
        names = [*self.texts]
        more = f" and {len(names) - 2} more" if len(names) > 2 else ""
        parts = [f"new {', '.join(names[:2])}{more}"] if names else []
        if self.demos:
            of_runs = [demo.augmented for demos in self.demos.values() for demo in demos]
            made, labeled = sum(of_runs), len(of_runs) - sum(of_runs)
            parts += [f"bootstrapped {made}"] if made else [] if labeled else ["no demos"]
            parts += [f"labeled {labeled}" if made else f"labeled only, {labeled}"] if labeled else []
        options = {**self.lm_options, **self.choices}
        parts += [_shown_numbers(slot, numbers) for slot, numbers in self.numbers.items()]
        return ", ".join([*parts, *(f"{name}={value}" for name, value in options.items())]) or "as the student"

    def without_row(self, row: str) -> Candidate:
        """Return the candidate without the demos of a row: no row may be its own demo."""
        if not any(demo.row == row for demos in self.demos.values() for demo in demos):
            return self
        kept = {name: tuple(demo for demo in demos if demo.row != row) for name, demos in self.demos.items()}
        return replace(self, demos=kept)

    def changes(self, other: Candidate) -> JsonObject:
        """Return the difference to another candidate: ``[this, other]`` of each text, list of demos, option, choice and number.

        >>> Candidate({"answer.instructions": "Answer."}).changes(Candidate())
        {'texts': {'answer.instructions': ['Answer.', None]}}
        """
        mine, others = self.to_json(), other.to_json()
        names = ("texts", "demos", "lm_options", "choices", "numbers")
        parts = {name: _difference(mine.get(name), others.get(name)) for name in names}
        return {name: part for name, part in parts.items() if part}

    def to_json(self) -> JsonObject:
        """Return the candidate as JSON, without empty parts."""
        parts: JsonObject = {
            "texts": dict(self.texts),
            "demos": {name: [demo.to_json() for demo in demos] for name, demos in self.demos.items()},
            "lm_options": dict(self.lm_options),
            "parents": list(self.parents),
            "choices": dict(self.choices),
            "numbers": dict(self.numbers),
        }
        return {name: part for name, part in parts.items() if part}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Decode the result of ``to_json``."""
        return cls(**decode_fields(cls, data))


def _shown_numbers(slot: Slot, numbers: JsonValue) -> str:
    if isinstance(numbers, dict):
        return " ".join([slot, *(f"{name}={_shown_number(each)}" for name, each in numbers.items())])
    return f"{slot}={_shown_number(numbers)}"


def _shown_number(value: JsonValue) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_shown_number(each)}' for name, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown_number, value))}]"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _difference(mine: JsonValue, other: JsonValue) -> JsonObject:
    some, others = cast(JsonObject, mine or {}), cast(JsonObject, other or {})
    pairs: dict[str, list[JsonValue]] = {name: [some.get(name), others.get(name)] for name in sorted({*some, *others})}
    return {name: [*pair] for name, pair in pairs.items() if digest_of(pair[0]) != digest_of(pair[1])}


def candidate_of(program: Module) -> Candidate:
    """Return the baseline: a candidate that changes nothing. Raises ``ConfigurationError`` for a program without predictors."""
    if not tunable(program):
        raise ConfigurationError(
            f"{type(program).__name__} has no predictors, so there is nothing to optimize. A predictor with "
            "_compiled = True, or in a module with it, is hidden."
        )
    return Candidate()


def tunable(program: Module) -> dict[str, Any]:
    """Return the predictors that an optimizer may change, by name: the program itself; those without ``_compiled = True``."""
    found = program.named_predictors()
    return {name: each for name, each in found if each is program or not getattr(each, "_compiled", False)}


# --- the texts of a program -----------------------------------------------------------------------------


def slots(
    program: Module, examples: Iterable[Example] = (), tune: Collection[str] = _DEFAULT_FAMILIES
) -> dict[Slot, str]:
    """Return the texts of a program that may be tuned, by slot.

    ``tune``: "instructions", "fields" (descriptions and criteria), "tools" (descriptions of tools and arguments), "tool_names"
    (the aliases), "demos" and "decisions" (which have no texts). Tools are those of agents, and for other predictors with an
    input for tools those in ``examples``. Tools with ``tunable=False`` and tools of the provider have no slots.
    """
    if unknown := sorted(frozenset(tune) - _FAMILIES):
        raise ConfigurationError(
            f"tune has {unknown[0]!r} (tuning a program). {suggest(unknown[0], _FAMILIES)}It may have "
            f"{', '.join(sorted(_FAMILIES))}."
        )
    agents = {id(agent.react): agent for _, agent in program.named_sub_modules(ReAct)}
    rows, found = list(examples), dict[str, str]()
    for name, predictor in tunable(program).items():
        spec = predictor.signature.spec
        if "instructions" in tune:
            found[f"{name}.instructions"] = spec.instructions
        if "fields" in tune:
            unwritten = (spec.tools_field, spec.history_field, spec.calls_field)
            found |= {
                f"{name}.fields.{each.name}.desc": each.description for each in spec.fields if each not in unwritten
            }
            found |= {
                f"{name}.fields.{path}.criteria.{label}": text
                for each in spec.outputs
                for path, texts in criteria_texts(each).items()
                for label, text in texts.items()
            }
        if spec.tools_field is not None and not frozenset(tune).isdisjoint({"tools", "tool_names"}):
            agent = agents.get(id(predictor))
            tools = agent.toolbox.tools.values() if agent is not None else _tools_in(rows, spec.tools_field.name)
            for tool in tools:
                found |= _slots_of(f"{name}.tools", tool, predictor.tool_texts.get(tool.name, ToolText()), tune)
    return found


def _tools_in(rows: Iterable[Example], field_name: str) -> Iterable[Tool]:
    """Return the tools in an input of examples, once by name. Rows of a file may have names of tools, which are ignored."""
    found: dict[str, Tool] = {}
    for row in rows:
        given: Any = row.get(field_name) or ()
        named = (
            given.items() if is_mapping(given) else ((None, item) for item in ([given] if callable(given) else given))
        )
        tools = (item if isinstance(item, Tool) else Tool(item, name) for name, item in named if callable(item))
        found = {tool.name: tool for tool in tools} | found
    return found.values()


def _slots_of(prefix: str, tool: Tool, text: ToolText, tune: Collection[str]) -> Iterator[tuple[Slot, str]]:
    if not tool.tunable or tool.config is not None:
        return
    if "tools" in tune:
        yield f"{prefix}.{tool.name}.desc", tool.description if text.desc is None else text.desc
        for name, schema in cast(JsonObject, tool.parameters.get("properties", {})).items():
            if is_mapping(schema):
                yield f"{prefix}.{tool.name}.args.{name}", text.args.get(name, str(schema.get("description", "")))
    if "tool_names" in tune:
        yield f"{prefix}.{tool.name}.alias", text.alias or tool.name


def check_text(slot: Slot, text: str) -> str | None:
    """Return the problem of a text that cannot be used, ``None`` if it can. Aliases are compared with other tools by the call.

    >>> check_text("answer.instructions", " ")
    'the text is empty'
    """
    if not text.strip():
        return "the text is empty"
    if ".tools." in slot and slot.endswith(".alias"):
        return alias_problem(text)
    if ".tools." in slot and len(text) > _MOST_CHARACTERS:
        return f"the text has {len(text)} characters; providers accept {_MOST_CHARACTERS} in a description of a tool"
    return None


# --- application ----------------------------------------------------------------------------------------


def applied(student: M, candidate: Candidate, choices: Mapping[str, Mapping[str, Any]] | None = None) -> M:
    """Return a copy of a program with the candidate's texts, demos, options, choices and numbers.

    Structure, demos and options are copied; models, tools and clients are shared. The student is not changed. ``choices``: the
    values by name and label, for a candidate that was read from JSON. Raises ``ConfigurationError`` for slots and predictors
    that the program does not have, and for a choice whose value is not known.

    >>> from sigwire.modules.predict import Predict
    >>> student = Predict("question -> answer")
    >>> applied(student, Candidate({"self.instructions": "Be brief."})).signature.instructions
    'Be brief.'
    """
    program = student.deepcopy()
    predictors = tunable(program)
    if unknown := sorted(candidate.demos.keys() - predictors.keys()):
        raise _unknown_error(f"demos of {unknown[0]!r}", program)
    for name, demos in candidate.demos.items():
        spec: SignatureSpec = predictors[name].signature.spec
        predictors[name].demos = [_demo_of(demo, spec) for demo in demos]
    for name, label in candidate.choices.items():
        value = _chosen(candidate, name, label, choices)
        for predictor in predictors.values():
            _CHOOSERS.get(name, partial(_choose_option, name))(predictor, value)
    if candidate.lm_options:
        for predictor in predictors.values():
            predictor.config = {**predictor.config, **candidate.lm_options}
    cascades = cascades_of(program) if candidate.numbers else {}
    for slot, numbers in candidate.numbers.items():
        if not _set_numbers(predictors, cascades, slot, numbers):
            raise _unknown_error(f"the slot {slot!r}", program)
    for slot, text in candidate.texts.items():
        owner = max((name for name in predictors if slot.startswith(f"{name}.")), key=len, default=None)
        if owner is None or not _set_text(predictors[owner], slot[len(owner) + 1 :], text):
            raise _unknown_error(f"the slot {slot!r}", program)
    return program


def _chosen(candidate: Candidate, name: str, label: str, choices: Mapping[str, Mapping[str, Any]] | None) -> Any:
    """Return the value of a choice."""
    if name in candidate.chosen:
        return candidate.chosen[name]
    known = (choices or {}).get(name, {})
    if label not in known:
        raise ConfigurationError(
            f"The candidate has the choice {name}={label!r}, whose value is not in its JSON (applying a candidate). Pass "
            f"choices={{{name!r}: {{{label!r}: ...}}}}."
        )
    return known[label]


def _choose_model(predictor: Any, value: object) -> None:
    predictor.lm = value


def _choose_adapter(predictor: Any, value: object) -> None:
    predictor.adapter, predictor.chosen_adapter = value, type(value).__name__


def _choose_option(name: str, predictor: Any, value: object) -> None:
    predictor.config = {**predictor.config, name: value}
    predictor.chosen_options = {**predictor.chosen_options, name: value}


_CHOOSERS: Mapping[str, Callable[[Any, object], None]] = {"model": _choose_model, "adapter": _choose_adapter}


def cascades_of(program: Module) -> dict[str, Cascade]:
    """Return the cascades of a program by name: its own is "self".

    >>> from sigwire.modules.predict import Predict
    >>> list(cascades_of(Cascade([Cascade([Predict("text -> answer")])])))
    ['self', 'stages[0]']
    """
    found = program.named_sub_modules(Cascade)
    return {name if name == "self" else name.removeprefix("self."): each for name, each in found}


def _set_numbers(
    predictors: Mapping[str, Any], cascades: Mapping[str, Cascade], slot: Slot, numbers: JsonValue
) -> bool:
    """Set a rule or the least confidences; return False for an unknown slot."""
    cascade = cascades.get(slot.removesuffix(".least"))
    if cascade is not None and slot.endswith(".least"):
        cascade.least = cast(Any, numbers)
        return True
    marks = [name for name in predictors if slot.startswith(f"{name}.decisions.")]
    if not marks or not isinstance(numbers, dict):
        return False
    owner = max(marks, key=len)
    path = slot.removeprefix(f"{owner}.decisions.")
    predictors[owner].decisions = {**predictors[owner].decisions, path: DecisionRule.from_json(numbers)}
    return True


def _demo_of(demo: Demo, spec: SignatureSpec) -> Example:
    """Return a demo with the values of its fields by their types."""
    example = Example.from_json(demo.data)
    for name, value in spec.restore(example.__dict__).items():
        example.__dict__[name] = value
    return example


def _unknown_error(part: str, program: Module) -> ConfigurationError:
    names = ", ".join(tunable(program)) or "none"
    return ConfigurationError(
        f"The candidate has {part}, which {type(program).__name__} does not have (applying a candidate). Its predictors are: "
        f"{names}. Apply the candidate to the program that it was made for."
    )


def _set_text(predictor: Any, path: str, text: str) -> bool:
    """Set one text of a predictor; return False if the predictor has no such text."""
    kind, _, rest = path.partition(".")
    setter = _SETTERS.get(kind)
    return setter is not None and setter(predictor, rest, text)


def _set_instructions(predictor: Any, rest: str, text: str) -> bool:
    predictor.signature = predictor.signature.with_instructions(text)
    return not rest


def _set_field(predictor: Any, rest: str, text: str) -> bool:
    name, is_criterion, label = rest.partition(".criteria.")
    if is_criterion:
        try:
            predictor.signature = predictor.signature.load_state({"criteria": {name: {label: text}}})
        except StateError:
            return False
        return True
    name = rest.removesuffix(".desc")
    if name == rest or name not in predictor.signature.spec.by_name:
        return False
    predictor.signature = predictor.signature.with_updated_fields(name, desc=text)
    return True


def _set_tool(predictor: Any, rest: str, text: str) -> bool:
    if predictor.signature.spec.tools_field is None:
        return False
    name, has_argument, argument = rest.partition(".args.")
    name, _, kind = (name, "", "args") if has_argument else rest.rpartition(".")
    if not name or kind not in ("desc", "args", "alias"):
        return False
    old: ToolText = predictor.tool_texts.get(name, ToolText())
    new: Mapping[str, Any] = {kind: {**old.args, argument: text} if has_argument else text}
    predictor.tool_texts = {**predictor.tool_texts, name: replace(old, **new)}
    return True


_SETTERS: Mapping[str, Callable[[Any, str, str], bool]] = {
    "instructions": _set_instructions,
    "fields": _set_field,
    "tools": _set_tool,
}
