"""The profiles of compatible hosts: complete, with a family each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.lm.codecs import openai_chat
from sigwire.lm.codecs.openai_chat import profiles
from sigwire.lm.codecs.openai_chat.profiles import COMPATIBLE, PROFILES, ChatProfile
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.codecs.shared.reasoning import EFFORTS
from sigwire.lm.option_aliases import OPTION_NAMES

ROWS = list(PROFILES.items())


def test_every_profile_of_the_module_is_in_the_table_and_public() -> None:
    rows = {name: value for name, value in vars(profiles).items() if isinstance(value, ChatProfile)}
    assert set(map(id, rows.values())) == set(map(id, PROFILES.values()))
    assert set(profiles.__all__) == {*rows, "PROFILES", "ChatProfile", "ReasoningNames"}


def test_profiles_of_one_family_differ_in_the_form_of_reasoning_alone() -> None:
    families: dict[str, list[ChatProfile]] = {}
    for row in PROFILES.values():
        families.setdefault(row.family, []).append(replace(row, replay="tags"))
    assert all(row == rows[0] for rows in families.values() for row in rows)
    assert {family for family, rows in families.items() if len(rows) > 1} == {"cerebras"}


@pytest.mark.parametrize(("name", "row"), ROWS, ids=PROFILES)
def test_profile_has_its_family_and_canonical_names(name: str, row: ChatProfile) -> None:
    assert row.history_rules.family == row.family
    assert set(row.reasoning.efforts) <= set(EFFORTS)
    assert list(row.reasoning.efforts) == sorted(row.reasoning.efforts, key=EFFORTS.index)
    assert row.options.keys() <= OPTION_NAMES


@pytest.mark.parametrize(("name", "row"), ROWS, ids=PROFILES)
def test_plain_request_has_no_extra_fields(name: str, row: ChatProfile) -> None:
    sent = openai_chat.encode(Request((Message.user("q"),)), Target(name, "m", row))
    assert sent.body == {"model": "m", "messages": [{"role": "user", "content": "q"}]}
    assert (sent.headers, sent.query, sent.warnings, sent.repeat) == ({}, {}, (), 1)


def test_replace_makes_the_profile_of_a_new_host() -> None:
    mine = replace(COMPATIBLE, family="mine", required="any")
    assert mine.history_rules.family == "mine"
    assert COMPATIBLE.required == "required"
