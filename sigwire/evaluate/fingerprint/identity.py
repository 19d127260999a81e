"""``run_fingerprint``: the parts of a run by group, for the header of its records; and what differs between two runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.narrow import is_object
from sigwire.evaluate.fingerprint.reading import PartReader

__all__ = ["differences", "metric_differences", "metric_fingerprint", "run_fingerprint"]

_MOST_NAMED = 3


def run_fingerprint(program: object, lm: object, adapter: object, metrics: Mapping[str, object]) -> JsonObject:
    """Return what the records of a run depend on: for each group the digests by part, and what cannot be compared.

    >>> def exact(example, prediction):
    ...     return example.answer == prediction.answer
    >>> found = run_fingerprint(lambda question: "4", None, None, {"exact": exact})
    >>> sorted(found), sorted(found["metrics"]["exact"])
    (['metrics', 'program', 'python', 'unknown'], ['`exact`: body'])
    """
    reader = PartReader()
    reader.program(program, lm)
    if adapter is not None:
        reader.parts["adapter"] = f"= {adapter!r:.200}"
        reader.value(adapter, "adapter")
    found: JsonObject = {"python": f"{sys.version_info[0]}.{sys.version_info[1]}", "program": {**reader.parts}}
    scored: JsonObject = {name: metric_fingerprint(metric, reader.unknown, lm) for name, metric in metrics.items()}
    return {**found, "metrics": scored, "unknown": [*reader.unknown]}


def metric_fingerprint(metric: object, unknown: list[str], lm: object = None) -> JsonObject:
    """Return the digests of a metric by part; add what cannot be compared to ``unknown``. ``lm``: the model of its judges."""
    reader = PartReader()
    shape = reader.value(metric, "metric")
    if reader.asks_default:
        reader.model(lm, "")
    if not reader.parts:
        reader.parts["metric"] = f"= {shape}"[:200]
    unknown.extend(each for each in reader.unknown if each not in unknown)
    return {**reader.parts}


def differences(old: Mapping[str, JsonValue], new: Mapping[str, JsonValue]) -> list[str]:
    """Return what differs between two fingerprints, by part, as phrases.

    >>> old = {"program": {"model": "= a", "`f`: body": "1"}, "metrics": {"exact": {"`exact`: body": "3"}}}
    >>> new = {"program": {"model": "= b", "`f`: body": "2"}, "metrics": {"exact": {"`exact`: body": "3"}}}
    >>> differences(old, new)
    ['model: was a, is b', '`f`: body changed']
    """
    if old.get("python") != new.get("python") and "python" in old:
        return [f"Python: was {old.get('python')}, is {new.get('python')}, whose compiled code cannot be compared"]
    found = [*_changes("", old.get("program"), new.get("program"))]
    return [*found, *_of_metrics(old, new)][:_MOST_NAMED]


def metric_differences(old: Mapping[str, JsonValue], new: Mapping[str, JsonValue]) -> list[str]:
    """Return what differs between the metrics of the same name in the headers of two runs.

    >>> header = {"fingerprint": {"metrics": {"exact": {"`exact`: body": "1"}}}}
    >>> metric_differences(header, {"fingerprint": {"metrics": {"exact": {"`exact`: body": "2"}}}})
    ['metric `exact`, `exact`: body changed']
    """
    before, after = old.get("fingerprint"), new.get("fingerprint")
    if not is_object(before) or not is_object(after) or before.get("python") != after.get("python"):
        return []
    return [*_of_metrics(before, after)][:_MOST_NAMED]


def _of_metrics(old: Mapping[str, JsonValue], new: Mapping[str, JsonValue]) -> Iterator[str]:
    before, after = old.get("metrics"), new.get("metrics")
    if is_object(before) and is_object(after):
        for name in after:
            yield from _changes(f"metric `{name}`, ", before.get(name), after[name])


def _part(parts: Mapping[str, JsonValue], name: str) -> str | None:
    return None if (found := parts.get(name)) is None else str(found)


def _changes(prefix: str, old: JsonValue, new: JsonValue) -> Iterator[str]:
    if not is_object(old) or not is_object(new):
        return
    for part in {**new, **old}:
        before, after = _part(old, part), _part(new, part)
        if before == after:
            continue
        if before is None or after is None:
            yield f"{prefix}{part} {'is new' if before is None else 'is gone'}"
        elif before.startswith("= ") and after.startswith("= "):
            yield f"{prefix}{part}: was {before[2:]}, is {after[2:]}"
        else:
            yield f"{prefix}{part} changed"
