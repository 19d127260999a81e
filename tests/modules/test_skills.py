"""``Skills``: instructions that are read on demand; hostile folders are refused by name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sigwire.core.tools.calls import ToolCall
from sigwire.errors import ConfigurationError, StateError, ToolFailed, ToolWarning
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.skills import Skills

HEAD = "---\nname: {name}\ndescription: {text}\n---\n"


def skill(folder: Path, name: str = "refunds", text: str = "How refunds are made.", body: str = "Ask first.") -> Path:
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    (place / "SKILL.md").write_text(HEAD.format(name=name, text=text) + body)
    return place


def read(skills: Skills, name: str = "refunds", **more: str) -> str:
    return str(skills.tools[0](name=name, **more))


def test_agent_reads_a_skill_that_its_prompt_lists(tmp_path: Path) -> None:
    place = skill(tmp_path)
    (place / "scripts").mkdir()
    (place / "scripts" / "run.py").write_text("print('never run')")
    calls = [ToolCall("", "read_skill", {"name": "refunds", **more}) for more in ({}, {"file": "scripts/run.py"})]
    lm = FakeLM([calls[:1], calls[1:], [ToolCall("", "submit", {"answer": "x"})]])
    agent = ReAct("question -> answer", tools=[len, Skills(tmp_path)])
    agent.set_lm(lm)
    result = agent(question="?")
    offered = str(lm.requests[0].tools)
    assert "- refunds: How refunds are made." in offered
    assert "Ask first." not in offered
    first, second = (result.steps[at].results[0].text for at in range(2))
    assert "Ask first." in first
    assert "scripts/run.py" in first
    assert second == "print('never run')"


def test_long_listing_has_names_only_at_its_end(tmp_path: Path) -> None:
    for at in range(40):
        skill(tmp_path, f"skill-{at:02}", "word " * 100)
    description = Skills(tmp_path).tools[0].description
    assert len(description) < 8_300
    assert all(f"- skill-{at:02}" in description for at in range(40))
    assert description.endswith("\n- skill-39")


def test_later_folder_counts_with_a_warning(tmp_path: Path) -> None:
    skill(tmp_path / "a", body="old")
    skill(tmp_path / "b", body="new")
    with pytest.warns(ToolWarning, match="replaces"):
        skills = Skills(tmp_path / "a", tmp_path / "b")
    assert read(skills).endswith("new")


@pytest.mark.parametrize(
    ("head", "description"),
    [
        ("description: plain text: with a colon # a comment", "plain text: with a colon"),
        ("description: 'it''s quoted'", "it's quoted"),
        ('description: "two\\nlines"', "two\nlines"),
        ("description: >\n  folded\n  text\n\n  next", "folded text\n\nnext"),
        ("description: |-\n  kept\n   lines", "kept\n lines"),
        ("description: d\nmetadata:\n  author: me\n  version: '1.0'\nlicense: MIT", "d"),
        ("# a comment\n\ndescription: d\nallowed-tools: Read Bash(git:*)", "d"),
    ],
)
def test_head_is_read(tmp_path: Path, head: str, description: str) -> None:
    place = skill(tmp_path)
    (place / "SKILL.md").write_text(f"---\r\nname: refunds\n{head}\n---\nbody", newline="")
    assert Skills(tmp_path).skills["refunds"].description == description


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("no head", 1),
        ("---\nname: refunds\ndescription: d\n", 1),
        ("---\nname: other\ndescription: d\n---\n", 1),
        ("---\nname: Refunds\ndescription: d\n---\n", 1),
        ("---\nname: refunds\n---\n", 1),
        ("---\nname: refunds\ndescription: " + "x" * 1_025 + "\n---\n", 1),
        ("---\nname: refunds\ndescription: [a, b]\n---\n", 3),
        ("---\nname: refunds\ndescription: &anchor d\n---\n", 3),
        ("---\nname: refunds\ndescription: 'open\n---\n", 3),
        ('---\nname: refunds\ndescription: "open\n---\n', 3),
        ("---\nname: refunds\ndescription: d\ndescription: e\n---\n", 4),
        ("---\nname: refunds\ndescription: d\n  more\n---\n", 4),
        ("---\nname: refunds\ndescription:\n  a:\n    b: c\n---\n", 1),
        ("---\nname: refunds\n\tdescription: d\n---\n", 3),
        ("---\nname: refunds\ndescription: d\nlist:\n  - a\n---\n", 5),
        ("---\nname: refunds\ndescription: a\0b\n---\n", 1),
        ("---\nname: refunds\n" + "x: y\n" * 20_000 + "---\n", 1),
    ],
)
def test_broken_head_is_refused_with_file_and_line(tmp_path: Path, text: str, line: int) -> None:
    (skill(tmp_path) / "SKILL.md").write_text(text)
    with pytest.raises(StateError, match=rf"refunds/SKILL.md', line {line}: ") as caught:
        Skills(tmp_path)
    assert str(caught.value).count("SKILL.md") == 1


def link_out(place: Path) -> None:
    (place.parent.parent / "secret").write_text("SECRET")
    (place / "SKILL.md").unlink()
    (place / "SKILL.md").symlink_to(place.parent.parent / "secret")


def folder_link(place: Path) -> None:
    outside = skill(place.parent.parent / "outside", "stolen")
    (place.parent / "stolen").symlink_to(outside)


def pipe(place: Path) -> None:
    (place / "SKILL.md").unlink()
    os.mkfifo(place / "SKILL.md")


def bytes_of_no_text(place: Path) -> None:
    (place / "SKILL.md").write_bytes(b"---\nname: \xff\xfe\n---\n")


def loop(place: Path) -> None:
    (place / "SKILL.md").unlink()
    (place / "SKILL.md").symlink_to("SKILL.md")


@pytest.mark.parametrize("change", [link_out, folder_link, pipe, bytes_of_no_text, loop])
def test_hostile_folder_is_refused_by_name(tmp_path: Path, change: Callable[[Path], None]) -> None:
    change(skill(tmp_path / "skills"))
    with pytest.raises(StateError, match=r"(refunds|stolen)/SKILL\.md"):
        Skills(tmp_path / "skills")


@pytest.mark.parametrize(
    "file",
    [
        "../secret",
        "a/../../secret",
        "/etc/passwd",
        "link",
        "deep/link",
        "..\\secret",
        "C:secret",
        "",
        "a\0b",
        "missing",
        "deep",
        "pipe",
    ],
)
def test_file_outside_of_the_skill_is_not_read(tmp_path: Path, file: str) -> None:
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "secret").write_text("SECRET")
    place = skill(tmp_path / "skills")
    (place / "deep").mkdir()
    for link in (place / "link", place / "deep" / "link"):
        link.symlink_to(tmp_path / "skills" / "secret")
    os.mkfifo(place / "pipe")
    with pytest.raises(ToolFailed, match="of the skill refunds cannot be read") as caught:
        read(Skills(tmp_path / "skills"), file=file)
    assert "SECRET" not in str(caught.value)


def test_large_and_binary_files_are_bounded(tmp_path: Path) -> None:
    place = skill(tmp_path, body="x" * 10_000_000)
    (place / "data").write_bytes(b"a\0b")
    for at in range(80):
        (place / f"file{at:02}").touch()
    skills = Skills(tmp_path)
    assert len(read(skills)) < 1_100_000
    with pytest.raises(ToolFailed, match="it is no text"):
        read(skills, file="data")


def test_link_inside_of_the_skill_is_read(tmp_path: Path) -> None:
    place = skill(tmp_path)
    (place / "a.md").write_text("A")
    (place / "b.md").symlink_to("a.md")
    assert read(Skills(tmp_path), file="b.md") == "A"


def test_unknown_skill_names_the_known_ones(tmp_path: Path) -> None:
    skill(tmp_path)
    with pytest.raises(ToolFailed, match="The skills are: refunds"):
        read(Skills(tmp_path), "refund")


def test_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is no folder"):
        Skills(tmp_path / "none")
    with pytest.raises(ConfigurationError, match="needs a folder"):
        Skills()
