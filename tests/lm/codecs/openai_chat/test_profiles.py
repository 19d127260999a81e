"""The rows of compatible hosts: each is complete, tagged with its own family, and only differs by its facts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.lm.codecs import openai_chat
from sigwire.lm.codecs.openai_chat import profiles as dialects
from sigwire.lm.codecs.openai_chat.profiles import COMPATIBLE, DIALECTS, ChatProfile
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.codecs.shared.reasoning import EFFORTS

ROWS = list(DIALECTS.items())


def test_every_row_of_the_module_is_in_the_table_and_public() -> None:
    rows = {name: value for name, value in vars(dialects).items() if isinstance(value, ChatProfile)}
    assert set(map(id, rows.values())) == set(map(id, DIALECTS.values()))
    assert set(dialects.__all__) == {*rows, "DIALECTS", "ChatProfile", "ReasoningWords"}


def test_no_two_rows_share_a_family() -> None:
    assert len({row.family for row in DIALECTS.values()}) == len(DIALECTS)


@pytest.mark.parametrize(("name", "row"), ROWS, ids=DIALECTS)
def test_a_row_speaks_of_itself_and_in_our_words(name: str, row: ChatProfile) -> None:
    assert row.history_rules.family == row.family
    assert set(row.reasoning.efforts) <= set(EFFORTS)
    assert list(row.reasoning.efforts) == sorted(row.reasoning.efforts, key=EFFORTS.index)
    assert row.options.keys() <= openai_chat.OPTIONS.keys() | {"top_k"}


@pytest.mark.parametrize(("name", "row"), ROWS, ids=DIALECTS)
def test_nothing_is_sent_that_was_not_asked_for(name: str, row: ChatProfile) -> None:
    sent = openai_chat.encode(Request((Message.user("q"),)), Target(name, "m", row))
    assert sent.body == {"model": "m", "messages": [{"role": "user", "content": "q"}]}
    assert (sent.headers, sent.query, sent.warnings, sent.repeat) == ({}, {}, (), 1)


def test_a_new_host_is_one_row() -> None:
    mine = replace(COMPATIBLE, family="mine", required="any")
    assert mine.history_rules.family == "mine"
    assert COMPATIBLE.required == "required"
