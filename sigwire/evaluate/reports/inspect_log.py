"""A run as a log of Inspect AI (log schema version 2), written without the package: ``inspect view`` opens the file.

Inspect reads the header of a log without its samples, so every other key is written before "samples", "plan" and "stats"
among these. The viewer lists files whose name starts with a time. ``trust_content`` is false: values are shown as plain text.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.record import FieldValue
from sigwire.evaluate.calls import RecordedCall, whole_calls
from sigwire.evaluate.figures.exports import write_text
from sigwire.evaluate.figures.scored_run import ScoredRun
from sigwire.evaluate.records import ExampleRecord
from sigwire.evaluate.reports.page import encoded
from sigwire.evaluate.segments import utc_now
from sigwire.evaluate.statistics import standard_error
from sigwire.modules.answer import meta_of

__all__ = ["inspect_log", "write_inspect_log"]

_VERSION = 2
_STATUS = {"complete": "success", "cancelled": "cancelled", "budget": "cancelled", "aborted": "error"}
_STOP_REASONS = {
    "stop": "stop",
    "length": "max_tokens",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "error": "unknown",
}
_FAILED_STOP_REASONS = {
    "OutputTruncated": "max_tokens",
    "Refused": "content_filter",
    "ContentFiltered": "content_filter",
    "ContextWindowExceededError": "model_length",
    "LMContentFilteredError": "content_filter",
}
_RUN_FIELDS = ("steps", "history", "termination_reason")


def write_inspect_log(run: ScoredRun, path: str | os.PathLike[str]) -> Path:
    """Write a run as a log of Inspect and return its path. ``path``: a file, or a folder, in which the name is chosen."""
    log, target = inspect_log(run), Path(path)
    if target.suffix != ".json":
        created = _created(run).replace(microsecond=0).isoformat().replace(":", "-")
        name = re.sub(r"[^A-Za-z0-9]+", "-", run.program_name).strip("-").lower() or "program"
        target /= f"{created}_{name}_{_digest(run)}.json"
    write_text(target, encoded(log))
    return target


def inspect_log(run: ScoredRun) -> JsonObject:
    """Return a run as the JSON of a log of Inspect, in the order of its keys."""
    error = next((record for record in reversed(run.records) if record.cell.failure), None)
    created = _created(run)
    return {
        "version": _VERSION,
        "status": _STATUS[run.status],
        "eval": _eval(run, created),
        "plan": {
            "name": run.program_name or "plan",
            "steps": [{"solver": run.program_name or "program", "params": {}}],
        },
        "results": _results(run),
        "stats": {
            "started_at": created.isoformat(),
            "completed_at": (created + timedelta(seconds=run.seconds)).isoformat(),
            "model_usage": {model: _usage(usage.counts()) for model, usage in run.usage.items()},
        },
        **({"error": _error(error)} if run.status == "aborted" and error is not None else {}),
        **({"reductions": [_reduction(run)]} if run.repeat > 1 else {}),
        "samples": [_sample(run, *each) for each in zip(run.records, run.predictions, strict=True)],
    }


def _eval(run: ScoredRun, created: datetime) -> JsonObject:
    header, digest = run.header, _digest(run)
    devset, git = header.get("devset"), header.get("git")
    spec: JsonObject = {
        "eval_id": digest,
        "run_id": digest,
        "created": created.isoformat(),
        "task": run.program_name or "program",
        "task_id": digest,
        "dataset": {
            "name": devset.get("name") if isinstance(devset, dict) else None,
            "samples": run.n,
            "sample_ids": [records[0].id for records in run.by_example.values()],
            "shuffled": False,
        },
        "model": _model(run),
        "config": {"epochs": run.repeat, "epochs_reducer": [_reducer(run)]},
        "packages": {"sigwire": str(header.get("sigwire", ""))},
        "metadata": {"sigwire": {name: header[name] for name in ("program", "lm", "metrics") if name in header}},
        "viewer": {"trust_content": False},
        "scorers": [{"name": name} for name in run.metrics],
    }
    if isinstance(git, dict):
        spec["revision"] = {"type": "git", "origin": "", "commit": str(git.get("commit")), "dirty": git.get("dirty")}
    return spec


def _results(run: ScoredRun) -> JsonObject:
    scores: list[JsonValue] = []
    for name, each in run.by_metric.items():
        metrics: JsonObject = {}
        if not math.isnan(each.mean):
            metrics["mean"] = {"name": "mean", "value": each.mean, "params": {}}
        if (error := _standard_error(each)) is not None:
            metrics["stderr"] = {"name": "stderr", "value": error, "params": {}}
        scored = len(each.scored_values)
        counts: JsonObject = {"scored_samples": scored, "unscored_samples": len(each.values) - scored}
        scores.append(
            {"name": name, "scorer": name, "reducer": _reducer(run), **counts, "params": {}, "metrics": metrics}
        )
    completed = sum(record.cell.failure is None for record in run.records)
    return {"total_samples": run.n * run.repeat, "completed_samples": completed, "scores": scores}


def _standard_error(run: ScoredRun) -> float | None:
    groups = len(run.scored_values) if run.clusters is None else len(set(run.clusters))
    return standard_error(run.scored_values, run.clusters) if groups > 1 else None


def _reducer(run: ScoredRun) -> str:
    return run.reduce.replace("@", "_at_")


def _reduction(run: ScoredRun) -> JsonObject:
    """Return the reduced score of each example that has one."""
    samples: list[JsonValue] = [
        {"value": value, "sample_id": run.by_example[index][0].id}
        for index, value in run.values.items()
        if value is not None
    ]
    return {"scorer": run.metric_name, "reducer": _reducer(run), "samples": samples}


# --- samples


def _sample(run: ScoredRun, record: ExampleRecord, prediction: FieldValue) -> JsonObject:
    cell, calls = record.cell, whole_calls(record.cell.calls)
    answers, history = _answers(cell.outputs or {})
    source = "sent" if calls else "turns" if history is not None or cell.steps else "none"
    sample: JsonObject = {
        "id": record.id,
        "epoch": record.repeat,
        "input": _lines(record.inputs),
        "target": _lines(record.labels),
        "messages": list(_sent(calls[-1]) if calls else _turns(record, history)),
        "output": _output(run, record, prediction, answers, calls[-1] if calls else None),
        "scores": _scores(run, record, answers),
        "metadata": {
            "index": record.index,
            "requests": cell.requests,
            "cache_hits": cell.hits,
            "messages": _SOURCES[source],
        },
        "model_usage": {model: _usage(usage) for model, usage in cell.usage.items()},
        "total_time": cell.seconds,
        "working_time": cell.seconds,
        **({"events": list(map(_event, calls))} if calls else {}),
    }
    if cell.failure is not None:
        sample["error"] = _error(record)
    if record.started:
        sample["started_at"] = _time(record.started).isoformat()
    return sample


def _answers(outputs: Mapping[str, JsonValue]) -> tuple[JsonObject, JsonValue]:
    """Return the declared outputs, and the history of an agent's run, or ``None``."""
    prefix = "run_" if "run_history" in outputs else ""
    history = outputs.get(f"{prefix}history")
    if not isinstance(history, dict) or f"{prefix}steps" not in outputs:
        return dict(outputs), None
    names = {f"{prefix}{name}" for name in _RUN_FIELDS}
    return {name: value for name, value in outputs.items() if name not in names}, history


def _lines(fields: Mapping[str, JsonValue]) -> str:
    """Return fields as lines of name and value.

    >>> _lines({"question": "2+2?", "tags": ["a"]})
    'question: 2+2?\\ntags: ["a"]'
    """
    return "\n".join(f"{name}: {_text(value)}" for name, value in fields.items())


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else dumps(value)


_SOURCES = {
    "sent": "those of the last call of a model, as sent and received; events has all calls",
    "turns": "the turns of the agent; Evaluate(requests=True) keeps the messages as they are sent",
    "none": "not recorded; Evaluate(requests=True) keeps them",
}


def _turns(record: ExampleRecord, history: Any) -> Iterator[JsonObject]:
    """Yield the turns of an agent. Of other programs, and of what was sent, a record without calls knows nothing."""
    if history is None:
        for step in record.cell.steps:
            calls, results = ([part.to_json() for part in parts] for parts in (step.calls, step.results))
            yield from _message({"role": "assistant", "parts": [{"type": "text", "text": step.thought}, *calls]})
            yield from _message({"role": "tool", "parts": results})
        return
    kinds: Mapping[str, Any] = history.get("kinds") or {}
    for place, turn in enumerate(history.get("messages") or ()):
        if kinds.get(str(place)) == "message":
            yield from _message(turn)
        else:
            yield {"role": "user", "content": _lines(turn), "source": "input"}


def _sent(call: RecordedCall) -> Iterator[JsonObject]:
    """Yield the messages of a call, the answer last."""
    for message in (*call.messages, *call.choices[:1]):
        yield from _message(message)


def _event(call: RecordedCall) -> JsonValue:
    """Return a call of a model as an event."""
    tools = [tool.get("function", tool) for tool in call.tools]
    return {
        "event": "model",
        "model": call.model,
        **({"role": call.path} if call.path else {}),
        "input": [made for message in call.messages for made in _message(message)],
        "tools": [
            {"name": str(tool.get("name", "tool")), "description": str(tool.get("description", ""))}
            for tool in tools
            if isinstance(tool, dict)
        ],
        "tool_choice": "auto",
        "config": {},
        "output": _call_output(call),
        **({"error": call.error} if call.error else {}),
        **({"cache": "read"} if call.is_hit else {}),
    }


def _call_output(call: RecordedCall) -> JsonObject:
    choices: list[JsonValue] = [
        {"message": {**made, "source": "generate"}, "stop_reason": _reason(choice.get("finish_reason"))}
        for choice in call.choices
        for made in _message(choice)
    ]
    return {"model": call.model, "choices": choices, **({"error": call.error} if call.error else {})}


def _message(message: Mapping[str, Any]) -> Iterator[JsonObject]:
    parts: Sequence[Any] = message.get("parts") or ()
    if message.get("role") == "tool":
        yield from (_tool_message(part) for part in parts)
        return
    calls = [_tool_call(part) for part in parts if part.get("type") == "tool_call"]
    texts = [_part_text(part) for part in parts if part.get("type") != "tool_call"]
    made: JsonObject = {"role": message.get("role"), "content": "\n".join(filter(None, texts))}
    yield {**made, "tool_calls": calls} if calls else made


def _tool_call(part: Mapping[str, Any]) -> JsonValue:
    call: JsonObject = {"id": part.get("id"), "function": part.get("name"), "type": "function"}
    call["arguments"] = part.get("arguments") or {}
    if part.get("arguments") is None:
        call["parse_error"] = str(part.get("raw_arguments") or "the arguments are no object")
    return call


def _tool_message(part: Mapping[str, Any]) -> JsonObject:
    text = _text(part.get("content", ""))
    made: JsonObject = {"role": "tool", "content": text, "tool_call_id": part.get("id"), "function": part.get("name")}
    return {**made, "error": {"type": "unknown", "message": text}} if part.get("is_error") else made


def _part_text(part: Mapping[str, Any]) -> str:
    if "text" in part:
        return str(part["text"])
    content: Any = part.get("content")
    size = f", {content['bytes']:,} bytes, sha256 {content['sha256']}" if isinstance(content, dict) else ""
    return f"[{part.get('type', 'part')}{size}]"


def _output(
    run: ScoredRun, record: ExampleRecord, prediction: FieldValue, answers: JsonObject, last: RecordedCall | None
) -> JsonObject:
    model, failure = _model(run), record.cell.failure
    if last is not None and last.choices:
        made = _call_output(last)
        return {**made, "time": record.cell.seconds, **({"error": failure.message} if failure else {})}
    if record.cell.outputs is None:
        reason = _FAILED_STOP_REASONS.get(failure.type if failure else "", "unknown")
        message: JsonObject = {"role": "assistant", "content": "", "source": "generate"}
        choices: list[JsonValue] = [{"message": message, "stop_reason": reason}]
        return {"model": model, "choices": choices, "error": failure.message if failure else None}
    message = {"role": "assistant", "content": _lines(answers), "source": "generate"}
    return {
        "model": model,
        "choices": [{"message": message, "stop_reason": _stop_reason(prediction)}],
        "time": record.cell.seconds,
    }


def _stop_reason(prediction: FieldValue) -> str:
    """Return Inspect's word for the end of the answer; a prediction that was read from a file does not have it."""
    choice = getattr(meta_of(prediction), "choice", None) if hasattr(prediction, "_meta") else None
    return "unknown" if choice is None else _reason(choice.finish_reason)


def _reason(finish_reason: JsonValue) -> str:
    return _STOP_REASONS.get(str(finish_reason), "unknown")


def _scores(run: ScoredRun, record: ExampleRecord, answers: JsonObject) -> JsonValue:
    """Return the scores by metric; ``None`` for a record without a score."""
    cell = record.cell
    if cell.score is None:
        return None
    values = {run.metric_name: cell.score, **cell.subscores}
    more: JsonObject = {"answer": _lines(answers), "explanation": cell.feedback or None}
    return {name: {"value": value, **more} for name, value in values.items()}


def _error(record: ExampleRecord) -> JsonObject:
    failure = record.cell.failure
    if failure is None:
        return {"message": "", "traceback": "", "traceback_ansi": ""}
    where = f" (at {failure.path})" if failure.path else ""
    trace = failure.traceback or f"{failure.type}: {failure.message}"
    return {"message": f"{failure.type}: {failure.message}{where}", "traceback": trace, "traceback_ansi": trace}


# --- figures and times


def _usage(counts: Mapping[str, JsonValue]) -> JsonObject:
    read, written = _count(counts, "input_tokens"), _count(counts, "output_tokens")
    rest = {new: counts[name] for name, new in _COUNTS.items() if name in counts}
    return {"input_tokens": read, "output_tokens": written, "total_tokens": read + written, **rest}


_COUNTS = {
    "cached_tokens": "input_tokens_cache_read",
    "cache_write_tokens": "input_tokens_cache_write",
    "reasoning_tokens": "reasoning_tokens",
    "cost": "total_cost",
}


def _count(counts: Mapping[str, JsonValue], name: str) -> int:
    value = counts.get(name)
    return value if isinstance(value, int) else 0


def _model(run: ScoredRun) -> str:
    lm = run.header.get("lm")
    return str((lm.get("model") if isinstance(lm, dict) else None) or "none/none")


def _created(run: ScoredRun) -> datetime:
    return _time(str(run.header.get("started") or utc_now()))


def _time(text: str) -> datetime:
    """Return a time with its offset; times of records are in UTC.

    >>> _time("2026-11-21T23:00:12Z").isoformat()
    '2026-11-21T23:00:12+00:00'
    """
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _digest(run: ScoredRun) -> str:
    """Return an id of the run: equal for two exports of one run."""
    return sha256(dumps([run.program_name, run.header.get("started"), run.path, run.seconds]).encode()).hexdigest()[:22]
