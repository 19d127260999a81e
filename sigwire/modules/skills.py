"""``Skills``: folders of instructions that a model reads when a task needs them, and the tool that reads them.

A skill is ``folder/name/SKILL.md`` with a head (https://agentskills.io): ``name`` and ``description``. The description of the
tool lists them, so they are in the cached prefix of each request; bodies and other files are read on demand. The head is a
small part of YAML: ``key: value``, quoted values, ``>`` and ``|`` blocks, one level of nesting. Files are text: nothing is
run, and nothing outside of the folder of a skill is read.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from sigwire.core.json import JsonObject
from sigwire.core.tools.tool import Tool
from sigwire.errors import ConfigurationError, StateError, ToolFailed, ToolWarning, warn_user
from sigwire.keywords import ChecksKeywords
from sigwire.show.values import call_line, fields_line

__all__ = ["Skill", "Skills"]

_FILE = "SKILL.md"
_LARGEST_HEAD, _LARGEST_FILE = 64 * 1024, 1024 * 1024  # bytes
_LONGEST_LISTING = 8_000  # characters; beyond, names only
_MOST_FILES = 50  # in a listing of a skill
_NAME = re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
_LINE = re.compile(r"([A-Za-z][\w-]*):(?:[ ]+(.*))?")
_NO_TEXT = re.compile(r"[\[{&*!%@`,?]|-(?:\s|$)")
_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "The name of a skill."},
        "file": {"type": "string", "description": f"A file of the skill ({_FILE} if omitted)."},
    },
    "required": ["name"],
    "additionalProperties": False,
}


class Skill(NamedTuple):
    """A skill: its name and description, and its folder."""

    name: str
    description: str
    folder: Path

    def __repr__(self) -> str:
        return fields_line("Skill", self._asdict())


class Skills(ChecksKeywords):
    """The skills of one or more folders, for ``tools=[...]`` of an agent: one tool, ``read_skill``.

    Heads are read once, when the object is made. If two folders have a skill of one name, that of the later folder counts, with
    a warning. Raises ``ConfigurationError`` for a folder that does not exist, and ``StateError`` with file and line for a head
    that cannot be read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "refunds").mkdir()
    ...     head = "---\\nname: refunds\\ndescription: How refunds are made.\\n---\\n"
    ...     _ = Path(folder, "refunds", "SKILL.md").write_text(head + "Ask for the receipt.")
    ...     skills = Skills(folder)
    ...     print(skills.tools[0](name="refunds").splitlines()[-1], [*skills.skills])
    Ask for the receipt. ['refunds']
    """

    def __init__(self, *folders: str | PathLike[str]) -> None:
        if not folders:
            raise ConfigurationError("Skills needs a folder (making it). Write Skills('skills').")
        self.skills: dict[str, Skill] = {}
        for folder in map(Path, folders):
            if not folder.is_dir():
                raise ConfigurationError(
                    f"{str(folder)!r} is no folder (reading skills). Name a folder with a folder a skill."
                )
            for skill in _skills_of(folder):
                if (other := self.skills.pop(skill.name, None)) is not None:
                    text = f"The skill {skill.name!r} of {str(skill.folder)!r} replaces that of {str(other.folder)!r}."
                    warn_user(text, ToolWarning)
                self.skills[skill.name] = skill
        description = "Read a skill: instructions for a kind of task. Read it before you begin such a task. Skills:"
        self.tools: tuple[Tool, ...] = (
            Tool(
                name="read_skill",
                description="\n".join([description, *_listing([*self.skills.values()])]),
                parameters=_PARAMETERS,
                handler=self._read,
                on_crash="rerun",
            ),
        )

    def __repr__(self) -> str:
        return call_line("Skills", self.skills)

    def _read(self, name: str, file: str = _FILE) -> str:
        skill = self.skills.get(name)
        if skill is None:
            raise ToolFailed(f"There is no skill {name[:80]!r}. The skills are: {', '.join(self.skills)[:1000]}.")
        try:
            text = _text_of(skill.folder, file)
        except (OSError, ValueError) as error:
            files = ", ".join(_files_of(skill.folder))
            raise ToolFailed(
                f"{file[:80]!r} of the skill {name} cannot be read: {error}. Its files are: {files}."
            ) from error
        others = [each for each in _files_of(skill.folder) if each != _FILE]
        return f"Files of this skill: {', '.join(others)}.\n{text}" if file == _FILE and others else text


def _listing(skills: Sequence[Skill]) -> Iterator[str]:
    left = _LONGEST_LISTING - sum(len(skill.name) + 3 for skill in skills)
    for skill in skills:
        text = " ".join(skill.description.split())
        left -= len(text) + 2
        yield f"- {skill.name}: {text}" if left >= 0 else f"- {skill.name}"


def _skills_of(folder: Path) -> Iterator[Skill]:
    for each in sorted(folder.iterdir()):
        path = each / _FILE
        if each.is_dir() and (path.exists() or path.is_symlink()):
            if each.is_symlink() and not each.resolve().is_relative_to(folder.resolve()):
                raise _problem(path, 1, f"the folder is a link to {str(each.resolve())!r}, outside of {str(folder)!r}")
            yield _skill(each, path)


def _skill(folder: Path, path: Path) -> Skill:
    try:
        data = _bytes_of(folder, _FILE, _LARGEST_HEAD)
        head = _head(path, data.decode("utf-8-sig", "ignore" if len(data) >= _LARGEST_HEAD else "strict"))
    except (OSError, ValueError) as error:
        raise _problem(path, 1, str(error)) from error
    name, description = head.get("name"), head.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name != folder.name:
        raise _problem(
            path, 1, f"name is that of the folder, {folder.name!r}, in lower case, digits and hyphens, not {name!r:.80}"
        )
    if not isinstance(description, str) or not 0 < len(description.strip()) <= 1_024:
        raise _problem(path, 1, "description is a text of 1 to 1,024 characters")
    return Skill(name, description.strip(), folder)


# --- files: inside of the folder of a skill only


def _text_of(folder: Path, file: str) -> str:
    data = _bytes_of(folder, file, _LARGEST_FILE)
    is_cut = len(data) >= _LARGEST_FILE
    text = data.decode("utf-8-sig", "ignore" if is_cut else "strict")
    if "\0" in text:
        raise ValueError("it is no text")
    return f"{text}\n(Cut after {_LARGEST_FILE} bytes.)" if is_cut else text


def _bytes_of(folder: Path, file: str, most: int) -> bytes:
    """Return the first bytes of a regular file inside of a folder. Raises ``ValueError`` for a path that leaves the folder."""
    place = PurePosixPath(file)
    if not file or place.is_absolute() or ".." in place.parts or "\\" in file or ":" in file:
        raise ValueError("a file is named by its path inside of the folder of the skill")
    try:
        path = (folder / file).resolve()
    except RuntimeError as error:  # of Python 3.11 and 3.12, for a loop of links
        raise ValueError(str(error)) from error
    if not path.is_relative_to(folder.resolve()):
        raise ValueError("it is a link that leaves the folder of the skill")
    # O_NONBLOCK: a pipe would wait for a writer. O_NOFOLLOW: a link that was put there since.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    with open(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is no file")
        return opened.read(most)


def _files_of(folder: Path) -> list[str]:
    found: list[str] = []
    for place, folders, files in os.walk(folder):
        folders.sort()
        found += (Path(place, file).relative_to(folder).as_posix() for file in sorted(files))
        if len(found) > _MOST_FILES:
            return [*found[:_MOST_FILES], "..."]
    return found


# --- the head


def _head(path: Path, text: str) -> dict[str, str | dict[str, str]]:
    lines = text.splitlines()
    end = next((at for at, line in enumerate(lines) if at and line.rstrip() == "---"), None)
    if not lines or lines[0].rstrip() != "---" or end is None:
        raise _problem(path, 1, f"the head is missing: lines between two lines '---' within {_LARGEST_HEAD} bytes")
    if "\0" in "".join(lines[:end]):
        raise _problem(path, 1, "the head has a NUL character")
    head: dict[str, str | dict[str, str]] = {}
    at = 1
    while at < end:
        if not (line := lines[at]).strip() or line.lstrip().startswith("#"):
            at += 1
            continue
        found = _LINE.fullmatch(line.rstrip())
        if found is None or found[1] in head:
            raise _problem(path, at + 1, "expected 'key: value' with a new key")
        number, at = at + 1, at + 1
        inside = at
        while at < end and (not lines[at].strip() or lines[at].startswith(" ")):
            at += 1
        head[found[1]] = _value(path, number, found[2] or "", lines[inside:at])
    return head


def _value(path: Path, number: int, value: str, inside: Sequence[str]) -> str | dict[str, str]:
    """Return the value of a key. ``inside``: the indented lines below it."""
    if re.fullmatch(r"[>|][+-]?", value):
        width = min((len(line) - len(line.lstrip()) for line in inside if line.strip()), default=0)
        block = "\n".join(line[width:].rstrip() for line in inside).strip("\n")
        return block if value[0] == "|" else re.sub(r"(?<!\n)\n(?!\n)", " ", block)
    lines = [(number + at, line.strip()) for at, line in enumerate(inside, 1) if line.strip()]
    if value and lines:
        raise _problem(path, lines[0][0], "an indented line belongs to no key")
    if not lines:
        return _scalar(path, number, value)
    nested: dict[str, str] = {}
    for place, line in lines:
        found = _LINE.fullmatch(line)
        if found is None or found[1] in nested:
            raise _problem(path, place, "expected 'key: value' with a new key, one level deep")
        nested[found[1]] = _scalar(path, place, found[2] or "")
    return nested


def _scalar(path: Path, number: int, value: str) -> str:
    value = value.strip()
    if value[:1] == "'":
        if re.fullmatch(r"'(?:[^']|'')*'", value):
            return value[1:-1].replace("''", "'")
        raise _problem(path, number, "the quoted value has no end")
    if value[:1] == '"':
        try:
            return str(json.loads(value))
        except ValueError:
            raise _problem(path, number, "the quoted value has no end, or an unknown escape") from None
    if _NO_TEXT.match(value) or value[:1] in (">", "|"):
        raise _problem(path, number, "lists, objects and references of YAML are not read; quote a text that begins so")
    return re.sub(r"\s#.*", "", value)


def _problem(path: Path, line: int, why: str) -> StateError:
    return StateError(f"{str(path)!r}, line {line}: {why} (reading a skill). Correct the file, or remove the folder.")
