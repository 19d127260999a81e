"""Media: the kinds, details and names that a provider takes, and the others as losses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from sigwire.core.parts import AudioPart, FilePart, ImagePart, MediaPart, TextPart
from sigwire.core.tools.calls import ToolResult
from sigwire.lm.histories.losses import PartLoss
from sigwire.lm.histories.rules import HistoryRules

__all__ = ["fit_media_part", "fit_result", "media_kind"]


def fit_media_part(
    part: ImagePart | AudioPart | FilePart, number: int, kinds: frozenset[str] | None, rules: HistoryRules
) -> tuple[MediaPart, tuple[PartLoss, ...]]:
    """Return a part as the provider takes it: a note in place of a kind that is not in ``kinds`` (``None``: all are)."""
    is_text = isinstance(part, FilePart) and (part.media_type or "").startswith("text/") and part.data is not None
    if kinds is None or media_kind(part) in kinds or (is_text and kinds):
        return _without_labels(part, number, rules)
    name = media_kind(part)
    title = f": {part.filename}" if isinstance(part, FilePart) and part.filename else ""
    note = TextPart(f"[{name} left out{title}]")
    return note, (PartLoss(number, "media", f"An input of kind {name} became the note {note.text!r}.", "content"),)


def _without_labels(
    part: ImagePart | AudioPart | FilePart, number: int, rules: HistoryRules
) -> tuple[MediaPart, tuple[PartLoss, ...]]:
    """Return a part without the detail and the name that the wire has no place for."""
    if isinstance(part, ImagePart) and not rules.detail and part.detail not in (None, "auto"):
        why = "There is no place for an image's detail; it was left out."
        return replace(part, detail=None), (PartLoss(number, "detail", why, "form"),)
    if not isinstance(part, FilePart) or not part.filename or (name := _name_of(part, rules)) == part.filename:
        return part, ()
    why = "There is no place for the name of a file; it was left out."
    renamed = PartLoss(number, "filename", f"The name of a file became {name!r}.", "none")
    return replace(part, filename=name), (renamed if name else PartLoss(number, "filename", why, "form"),)


def _name_of(part: FilePart, rules: HistoryRules) -> str | None:
    if rules.filenames == "plain":
        # A name may have letters, digits, single blanks, hyphens, parentheses and brackets (Bedrock's service model).
        stem = (part.filename or "").rpartition(".")[0]
        return (
            _plain(part.filename or "") if _plain(stem) or not stem else None
        )  # no letter is left but those of ".pdf"
    is_kept = rules.filenames == "all" or (rules.filenames == "data" and part.data is not None)
    return part.filename if is_kept else None


def _plain(name: str) -> str | None:
    return " ".join(re.sub(r"[^A-Za-z0-9\-()\[\]]", " ", name).split())[:200].rstrip() or None


def media_kind(part: MediaPart) -> str:
    """Return "image", "audio" or "file".

    >>> media_kind(ImagePart(url="https://a.example/b.png"))
    'image'
    """
    return _KINDS.get(type(part), "text")


_KINDS: Mapping[type, str] = {ImagePart: "image", AudioPart: "audio", FilePart: "file"}


def fit_result(result: ToolResult, number: int, rules: HistoryRules) -> tuple[ToolResult, tuple[PartLoss, ...]]:
    """Return a result with media that the provider takes."""
    media: list[MediaPart] = []
    losses: list[PartLoss] = []
    for part in result.media:
        if isinstance(part, TextPart) and not rules.blank_text and not part.text.strip():
            losses.append(PartLoss(number, "text", "An empty text was left out.", "none"))
            continue
        fitted, lost = (part, ()) if isinstance(part, TextPart) else fit_media_part(part, number, rules.media, rules)
        media.append(fitted)
        losses += lost
    return (result, ()) if not losses else (replace(result, media=tuple(media)), tuple(losses))
