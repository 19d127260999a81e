"""``experiment.json``: what an experiment is, and where it ran; without a key, a header or a folder of the user.

    axes, seeds, arms      the grid
    options, data          of the measurement; the digests of the rows of each part of each data set
    fingerprint            what results depend on: by axis and label, and by metric, a digest for each part
    models                 name, host and options by label; the names and fingerprints that they served
    points                 by folder: the digests of the program and of its first prompt
    source                 ``module:name``, if the command line loaded the experiment
    environments           one for each run that did work

A label keeps its meaning: ``check_record`` refuses an experiment in which a label of the folder means something else.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sigwire.core.bytecode import digest
from sigwire.core.json import JsonObject, dumps
from sigwire.core.narrow import is_mapping
from sigwire.data.splitting import duplicates
from sigwire.errors import ConfigurationError
from sigwire.evaluate.examples import content_digest
from sigwire.evaluate.fingerprint.identity import differences, metric_fingerprint
from sigwire.evaluate.fingerprint.reading import PartReader
from sigwire.evaluate.git import git_details
from sigwire.evaluate.metric_plan import MetricPlan
from sigwire.evaluate.segments import surroundings
from sigwire.experiments.point import AXES
from sigwire.lm.secrets import redact_url, storable_options
from sigwire.modules.module import Module
from sigwire.modules.preview.whole_program import first_previews
from sigwire.optimizers.engine.identity import program_digest, writer_of
from sigwire.settings import current

if TYPE_CHECKING:
    from sigwire.core.example import Example
    from sigwire.experiments.declaration import Search
    from sigwire.experiments.point import Grid, MeasuredPoint

__all__ = [
    "FORMAT",
    "KEYS",
    "changes_of",
    "check_record",
    "environment",
    "labels_of",
    "merged_record",
    "point_facts",
    "record_of",
    "served_models",
    "text_of",
]

FORMAT = 1
KEYS = (
    "format", "axes", "seeds", "arms", "metrics", "options", "data", "fingerprint", "models", "points", "environments",
)  # fmt: skip
_PARTS = ("train", "dev", "test")
_LOCK_FILES = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "requirements.txt")
_MOST_NAMED = 3
# What decides how fast a search runs, or where it writes, is no part of what it finds.
_NO_PART_OF_A_SEARCH = frozenset(
    ("num_threads", "search", "budget", "journal", "progress", "on_event", "executor", "seed", "log_dir")
)


def record_of(experiment: Grid) -> JsonObject:
    """Return the record of an experiment that has not run."""
    options = {
        name: getattr(experiment, name) for name in ("repeat", "cluster", "interval", "failure_score", "timeout")
    }
    return {
        "type": "experiment",
        "format": FORMAT,
        "axes": {axis: [*labels] for axis, labels in experiment.axes.items()},
        "seeds": [*cast("Sequence[int]", experiment.seeds)],
        "arms": [[arm[axis] for axis in AXES] for arm in experiment.arms],
        "metrics": [*experiment.metrics],
        "options": {**options, "rollout_id": current().rollout_id},
        "data": {label: _data_of(split) for label, split in experiment.datasets.items()},
        "fingerprint": _fingerprint_of(experiment),
        "models": {label: _model_of(model) for label, model in experiment.models.items() if model is not None},
        "points": {},
        "source": experiment.source,
        "environments": [],
    }


def _data_of(split: Any) -> JsonObject:
    """Return number, ids and digest of each part, and how many rows of a part are equal to one of an earlier part."""
    ids = {part: [content_digest(row)[:12] for row in getattr(split, part)] for part in _PARTS}
    rows: list[Example] = [row for part in _PARTS for row in getattr(split, part)]
    found: JsonObject = {
        part: {"n": len(ids[part]), "digest": digest(ids[part]), "ids": [*ids[part]]} for part in _PARTS
    }
    return {**found, "equal_rows": len(duplicates(rows))}


def _fingerprint_of(experiment: Grid) -> JsonObject:
    """Return the digests of each label and each metric, and what cannot be compared."""
    unknown: list[str] = []
    labels: JsonObject = {}
    for axis, values in (
        ("program", {label: _without_models(each, experiment) for label, each in experiment.programs.items()}),
        ("model", experiment.models),
        ("adapter", experiment.adapters),
        ("options", experiment.options),
        ("wording", experiment.wordings),
        ("optimizer", experiment.optimizers),
    ):
        labels[axis] = {label: _parts_of(axis, value, unknown) for label, value in cast("Any", values).items()}
    metrics: JsonObject = {
        name: metric_fingerprint(metric, unknown, current().lm)
        for name, metric in MetricPlan(experiment.metric).metrics.items()
    }
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return {"python": version, "labels": labels, "metrics": metrics, "unknown": [*unknown]}


def _parts_of(axis: str, value: Any, unknown: list[str]) -> JsonObject:
    reader = PartReader()
    if axis == "program":
        program, lm = value
        reader.program(program, lm)
    elif axis == "optimizer" and value is not None:
        _read_search(reader, value)
    elif axis == "model" and hasattr(value, "model"):
        reader.model(value, "")
    elif axis == "adapter" and value is None and current().adapter is not None:
        reader.parts["adapter of the settings"] = digest(reader.value(current().adapter, "adapter"))
    elif value is not None:
        reader.parts[axis] = digest(reader.value(value, axis))
    unknown.extend(each for each in reader.unknown if each not in unknown)
    return {**reader.parts}


def _without_models(program: Any, experiment: Grid) -> tuple[Any, object]:
    """Return a program and the model of the settings; without models, if those of the grid replace all of them."""
    if any(model is None or is_mapping(model) for model in experiment.models.values()):
        return program, current().lm
    if isinstance(program, Module):
        program = program.deepcopy()
        program.set_lm(None)
    return program, None


def _read_search(reader: PartReader, search: Search) -> None:
    optimizer = search.optimizer
    limits = optimizer.budget.limits, optimizer.budget.seconds
    reader.parts["optimizer"] = f"= {type(optimizer).__name__}"
    reader.parts["budget"] = digest(repr(limits))
    given = {**vars(optimizer), **optimizer.search, **search.options}
    for name, value in sorted(given.items()):
        if not name.startswith("_") and name not in _NO_PART_OF_A_SEARCH:
            reader.parts[f"option `{name}`"] = digest(reader.value(value, name))
    if search.teacher is not None:
        reader.parts["teacher"] = digest(reader.value(search.teacher, "teacher"))
    if reader.asks_default or writer_of(optimizer) is not optimizer.prompt_model:
        reader.model(current().lm, "the settings")


def _model_of(model: Any) -> JsonObject:
    """Return name, host and options of a model, or of several by predictor, without secrets."""
    if is_mapping(model):
        return {"by_predictor": {str(name): _model_of(each) for name, each in model.items()}}
    options = storable_options(getattr(model, "kwargs", None) or {})
    address = getattr(model, "address", None)
    return {
        "model": str(getattr(model, "model", type(model).__name__)),
        "host": None if address is None else redact_url(str(address)),
        "options": {name: value for name, value in options.items() if value is not None},
    }


# --- the same experiment


def check_record(old: Mapping[str, Any], new: Mapping[str, Any], name: str) -> None:
    """Raise ``ConfigurationError`` unless an experiment can go on in a folder: what both have is equal, and none is gone.

    ``old``: the record of the folder ``name``; ``new``: that of the experiment.
    """
    if old.get("type") != "experiment" or old.get("format") != FORMAT:
        raise ConfigurationError(
            f"{name} has no experiment that this version can read (opening the folder; format {old.get('format')!r:.20}). Name "
            "another folder."
        )
    found = [*changes_of(old, new)]
    if not found:
        return
    more = f"; and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    raise ConfigurationError(
        f"{name} has an experiment that differs from this one: {'; '.join(found[:_MOST_NAMED])}{more} (opening the folder; "
        "nothing was written). Restore it, give what is new another label, or name another folder."
    )


def changes_of(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the record ``new`` lacks or has otherwise than ``old``, as phrases, the most general first."""
    for axis in AXES:
        before, now = old["axes"].get(axis, []), new["axes"][axis]
        yield from (f"{axis} `{label}` is gone" for label in before if label not in now)
    yield from (f"the seed {seed} is gone" for seed in old["seeds"] if seed not in new["seeds"])
    if any(arm not in new["arms"] for arm in old["arms"]):
        missing = next(arm for arm in old["arms"] if arm not in new["arms"])
        if all(label in new["axes"][axis] for axis, label in zip(AXES, missing, strict=True)):
            yield f"where= leaves out an arm of the folder ({', '.join(missing)})"
    if [*old["metrics"]] != [*new["metrics"]]:
        yield f"the metrics were {', '.join(old['metrics'])}, are {', '.join(new['metrics'])}"
    for name, value in new["options"].items():
        if old["options"].get(name) != value:
            yield f"{name} was {old['options'].get(name)!r}, is {value!r}"
    yield from _changed_rows(old["data"], new["data"])
    yield from _changed_labels(old["fingerprint"], new["fingerprint"])


def _changed_rows(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for label in old:
        for part in _PARTS if label in new else ():
            before, now = old[label][part]["ids"], new[label][part]["ids"]
            if before == now:
                continue
            removed, added = [each for each in before if each not in now], [each for each in now if each not in before]
            what = (
                f"row {before.index(removed[0])} changed" if removed else "rows were added" if added else "other order"
            )
            if len(before) != len(now):
                what = f"{len(before)} rows were, {len(now)} are"
            yield f"dataset `{label}`, {part}: {what}"


def _changed_labels(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    if old.get("python") != new.get("python"):
        yield from differences(old, new)
        return
    for axis, labels in old["labels"].items():
        for label, parts in labels.items():
            now = new["labels"].get(axis, {}).get(label)
            if now is not None:
                yield from (f"{axis} `{label}`, {each}" for each in differences({"program": parts}, {"program": now}))
    yield from differences({"metrics": old["metrics"]}, {"metrics": new["metrics"]})


def merged_record(old: JsonObject, new: JsonObject) -> JsonObject:
    """Return the record of an experiment that goes on: the new one, with what earlier runs found."""
    kept = {name: old[name] for name in ("points", "environments")}
    models = cast("dict[str, Any]", new["models"])
    for label, model in cast("dict[str, Any]", old.get("models") or {}).items():
        if label in models and "served" in model:
            models[label]["served"] = model["served"]
    return {**new, **kept, "source": new["source"] or old.get("source")}


# --- the environment


def environment() -> JsonObject:
    """Return the facts of the place of a run: time, versions, installed packages, lock file, commit."""
    packages = _packages()
    found: JsonObject = {
        **surroundings(with_git=False),
        "platform": platform.platform(),
        "packages": {"digest": digest(packages), "list": [*packages]},
    }
    for name in _LOCK_FILES:
        if (path := Path(name)).is_file():
            found["lock"] = {"file": name, "digest": sha256(path.read_bytes()).hexdigest()[:16]}
            break
    if (git := git_details()) is not None:
        found["git"] = git
    return found


@lru_cache(maxsize=1)
def _packages() -> tuple[str, ...]:
    """Return the installed packages with their versions: reading them takes half a second."""
    found = ((each.metadata["Name"], each.version) for each in metadata.distributions())
    return tuple(sorted({f"{name}=={number}" for name, number in found if name}, key=str.lower))


def point_facts(program: object, row: Example) -> JsonObject:
    """Return the digests of a program and of the first prompts that it sends for a row. A function has none."""
    if not isinstance(program, Module):
        return {"program": None, "prompt": None}
    previews = [preview.request.to_json().get("messages") for preview in first_previews(program, row)]
    return {"program": program_digest(program)[:16], "prompt": digest(dumps(previews)) if previews else None}


def served_models(record: Mapping[str, Any], found: Iterable[MeasuredPoint]) -> JsonObject:
    """Return the models of a record with the names, and the fingerprints of their systems, that answered for each label."""
    models: dict[str, Any] = {label: {**model} for label, model in record["models"].items()}
    for measured in found:
        served = {name for part in measured.evaluation.segments for name in part.served}
        if served:
            model = models.setdefault(measured.point.labels["model"], {})
            model["served"] = sorted({*model.get("served", ()), *served})
    return models


def text_of(record: JsonObject) -> str:
    """Return the text of a record. The folder of the user is written as ``~``."""
    text = dumps(record)
    folder = dumps(str(Path.home()))[1:-1]
    return text if len(folder) < 2 else text.replace(folder, "~")


def labels_of(record: Mapping[str, Any]) -> Mapping[str, tuple[str, ...]]:
    """Return the labels of each axis of a record."""
    axes: Mapping[str, Sequence[str]] = record["axes"]
    return {axis: tuple(axes[axis]) for axis in AXES}
