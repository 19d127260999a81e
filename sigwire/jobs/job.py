"""``Job``: what a worker needs to run rows, as JSON: names of code, state, model, settings; no key, no code, no object."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self, TypeAlias, cast

from sigwire.adapters.base import Adapter
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.lazy import version
from sigwire.core.tools.tool import Tool
from sigwire.errors import ConfigurationError, StateError
from sigwire.jobs.paths import check_path, digests_of, path_of
from sigwire.keywords import ChecksKeywords
from sigwire.lm.base import BaseLM
from sigwire.modules.field_types import FieldTypes, types_of
from sigwire.modules.module import Module
from sigwire.modules.programs.encoding import ProgramEncoder
from sigwire.modules.programs.library import LIBRARY
from sigwire.settings import Settings, current
from sigwire.show.card import BoundedRepr

__all__ = ["Job", "JobMetric", "run_rows_with"]

_FORMAT = 1
_TRAVELLING = (
    "fresh",
    "max_depth",
    "max_reasks",
    "num_threads",
    "rollout_id",
    "unknown_inputs",
    "warn_on_type_mismatch",
)
JobMetric: TypeAlias = "Callable[..., object] | str"

_usual_runner: str | None = None


def run_rows_with(runner: type[object]) -> None:
    """Set the runner of jobs that name none. This room knows no evaluation, so the module of the runner calls this."""
    global _usual_runner
    _usual_runner = f"{runner.__module__}:{runner.__qualname__}"


@dataclass(frozen=True, kw_only=True)
class Job(BoundedRepr, ChecksKeywords):
    """A program with what its rows need, as names and JSON, for ``map_rows``.

    ``program``: ``"module:name"`` of a module instance, of a class or function that makes a program, or of a program that is
    a function; or the JSON of a program. ``lm``: a model, ``"provider/model"``, or ``"module:function"`` that makes one;
    default: that of the settings. ``state``: of ``dump_state``. ``metric``: a function at the top of a module, or its path, or
    a list of these. ``settings``: of ``configure``, by name; ``adapter``: an adapter, or ``"module:function"`` that makes one.
    ``concurrency``: rows at once in each process. ``key``: ``"module:function"``, called in the worker for the API key;
    without it the worker reads its environment. ``allow_versions``: run with other versions of sigwire, Python or the files.
    ``rows``: ``"module:function"``, called in a thread of the worker with the id of a row for its Example or mapping of inputs.
    ``map_rows`` then takes ids: no input or label leaves the worker, and records have only ids and outputs.

    Raises ``ConfigurationError`` for what a worker cannot import, such as functions of ``__main__``.

    >>> job = Job(program="app:build", lm="openai/gpt-5-mini", metric="app:exact")
    >>> job.program, job.concurrency
    ('app:build', 64)
    """

    program: str | JsonObject
    lm: BaseLM | str | None = None
    state: JsonObject | None = None
    metric: JobMetric | Sequence[JobMetric] | None = None
    settings: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    adapter: Adapter | str | None = None
    concurrency: int = 64
    key: str | None = None
    allow_versions: bool = False
    rows: str | None = None
    options: JsonObject = field(default_factory=dict[str, JsonValue], repr=False)
    runner: str | None = field(default=None, repr=False)
    types: FieldTypes = field(default_factory=dict[str, Any], init=False, repr=False, compare=False)
    """The fields that the program of ``of`` declares. They stay in this process: a worker reads them from the program."""

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "types": {}}

    def __post_init__(self) -> None:
        if self.runner is None:  # a job keeps it: the process that reads a pickle may have no usual one
            object.__setattr__(self, "runner", _usual_runner)
        named = {"the program": self.program, "the key": self.key, "the function": self.rows, "the runner": self.runner}
        for role, path in named.items():
            if isinstance(path, str):
                check_path(path, role)
        if not isinstance(self.program, str | dict):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise ConfigurationError(
                f"program is 'module:name' or the JSON of one, not {self.program!r:.80} (making a job). Write Job.of(program)."
            )
        if self.lm is not None and not isinstance(self.lm, BaseLM | str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(
                f"lm is a model of sigwire, 'provider/model' or 'module:function', not {self.lm!r:.80} (making a job)."
            )
        if self.concurrency < 1:
            raise ConfigurationError(f"concurrency is a number above 0, not {self.concurrency} (making a job).")
        if odd := sorted(self.settings.keys() - set(_TRAVELLING)):
            raise ConfigurationError(
                f"The setting {odd[0]} does not travel to workers (making a job). Those that do are {', '.join(_TRAVELLING)}; "
                "lm, adapter and metric are options of the job."
            )
        self.to_json()  # refuses what has no name

    @classmethod
    def of(
        cls,
        program: object,
        metric: JobMetric | Sequence[JobMetric] | None = None,
        *,
        factory: Callable[..., object] | str | None = None,
        lm: BaseLM | str | None = None,
        concurrency: int = 64,
        key: str | None = None,
        allow_versions: bool = False,
        rows: str | None = None,
        runner: type[object] | None = None,
    ) -> Self:
        """Return the job of a program as it is now, with the model, adapter and settings of this context.

        A module travels as the path of its class if that takes no arguments, else as its class and arguments; a function by
        its path. ``factory``: a function of a module that makes the program, for modules whose arguments have no JSON form.
        ``runner``: the class that runs the rows in a worker, by default as an evaluation does.
        Raises ``ConfigurationError`` for a program that no worker can make.

        >>> from sigwire.lm.client import LM
        >>> from sigwire.modules.predict import Predict
        >>> Job.of(Predict("question -> answer"), lm=LM("offline/lexical")).program["$program"]
        'Predict'
        """
        now, defaults = current(), Settings()
        changed = {name: getattr(now, name) for name in _TRAVELLING if getattr(now, name) != getattr(defaults, name)}
        made = cls(
            program=_program_of(program, factory),
            lm=lm if lm is not None else cast("BaseLM | None", now.lm),
            state=program.dump_state() if isinstance(program, Module) else None,
            metric=metric,
            settings=changed,
            adapter=now.adapter,
            concurrency=concurrency,
            key=key,
            allow_versions=allow_versions,
            rows=rows,
            runner=None if runner is None else path_of(runner, "the runner"),
        )
        object.__setattr__(made, "types", types_of(program))
        return made

    def to_json(self) -> JsonObject:
        """Return the job as JSON."""
        metrics = [self.metric] if isinstance(self.metric, str) or callable(self.metric) else self.metric or ()
        data: JsonObject = {
            "format": _FORMAT,
            "runner": self.runner or _usual_runner,
            "program": self.program,
            "state": self.state,
            "lm": self.lm.dump_state() if isinstance(self.lm, BaseLM) else self.lm,
            "adapter": _adapter_json(self.adapter),
            "metrics": [each if isinstance(each, str) else path_of(each, "the metric") for each in metrics],
            "settings": {**self.settings},
            "concurrency": self.concurrency,
            "key": self.key,
            "rows": self.rows,
            "options": self.options,
        }
        for role, path in (("the metric", each) for each in cast("list[str]", data["metrics"])):
            check_path(path, role)
        return data

    def text(self, *, journal: Path | None = None, coordinator: str | None = None) -> str:
        """Return the job as the text that ``run_chunk`` takes. ``journal``: a folder; ``coordinator``: a URL."""
        data = self.to_json()
        if data["runner"] is None:
            raise ConfigurationError(
                "The job names no runner of rows (writing its text). Import Job from sigwire, or write Job.of(..., runner=...)."
            )
        versions: JsonObject = {} if self.allow_versions else _versions(_paths_in(data))
        place = None if journal is None else str(journal.absolute())
        run: JsonObject = {"journal": place, "coordinator": coordinator, "versions": versions, "driver": os.getpid()}
        return json.dumps({**data, **run})


def _versions(paths: Iterator[str]) -> JsonObject:
    """Return what decides the meaning of a job: versions, and digests of the files that it names."""
    return {"python": ".".join(map(str, sys.version_info[:2])), "sigwire": version(), **digests_of(paths)}


def _paths_in(data: JsonValue) -> Iterator[str]:
    if isinstance(data, dict):
        listed: JsonObject = cast(JsonObject, data.get("names") or {})
        program, metrics = data.get("program"), data.get("metrics")
        yield from (path for path in (*listed.values(), data.get("rows")) if isinstance(path, str))
        yield from (path for path in cast("list[str]", metrics or []))
        if isinstance(program, str):
            yield program
        else:
            yield from _paths_in(program)


# --- parts -------------------------------------------------------------------------------------------


def _program_of(program: object, factory: Callable[..., object] | str | None) -> str | JsonObject:
    if factory is not None:
        return factory if isinstance(factory, str) else path_of(factory, "the factory")
    if not isinstance(program, Module):
        return path_of(program, "the program")
    cls: Any = type(program)
    if not cls.__module__.startswith("sigwire.") and _takes_nothing(cls):
        return path_of(cls, "the program")
    encoder = ProgramEncoder()
    try:
        data = encoder.encode(program)
    except StateError as error:
        raise ConfigurationError(
            f"{cls.__name__} cannot be sent to workers: {error} Or name a function of a module that makes the program: "
            "Job.of(program, factory='app:build')."
        ) from error
    names = {name: _path_of_part(value, kind) for (kind, name), value in encoder.named if name not in LIBRARY}
    return {**data, "names": {**names}}


def _path_of_part(value: object, kind: str) -> str:
    """Return the path of a class, a function, or a tool: that of its function, or of the module's variable."""
    if not isinstance(value, Tool):
        return path_of(value, f"the {kind}")
    module = getattr(value.handler, "__module__", None)
    variables = vars(sys.modules[module]) if module in sys.modules else {}
    if (name := next((name for name, each in variables.items() if each is value), None)) is not None:
        check_path(path := f"{module}:{name}", "the tool")
        return path
    if value.handler is None or Tool(value.handler) != value:
        raise ConfigurationError(
            f"The tool {value.name} is not a variable of its function's module, so no worker can import it (making a job). "
            "Make it at the top of that module."
        )
    return path_of(value.handler, "the tool")


def _takes_nothing(cls: Any) -> bool:
    import inspect

    return len(inspect.signature(cls).parameters) == 0


def _adapter_json(adapter: object) -> JsonValue:
    if adapter is None or isinstance(adapter, str):
        return adapter
    options: JsonObject = {}
    for each in fields(cast(Any, adapter)):
        value = getattr(adapter, each.name)
        if each.init and each.name != "callbacks" and value != each.default:
            if type(value) not in (bool, int, float, str):
                raise ConfigurationError(
                    f"The option {each.name} of {type(adapter).__name__} has no JSON form (making a job). Pass "
                    "adapter='app:make_adapter'."
                )
            options[each.name] = value
    return {"class": path_of(type(adapter), "the adapter"), "options": options}
