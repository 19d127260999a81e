"""Tool names: whatever they are, a wire gets names it takes, no two meet, and each comes back as it was."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.tools.names import NameMap, NameRules

OPENAI = NameRules()
GEMINI = NameRules(allowed="a-zA-Z0-9_.:-", first="a-zA-Z_")
CASELESS = NameRules(case_sensitive=False)
SHORT = NameRules(allowed="a-z0-9", first="a-z", max_length=16, replacement="0", prefix="x", case_sensitive=False)
RULES = [OPENAI, GEMINI, CASELESS, SHORT]

# Few letters, so that names often meet once mapped; and any text at all.
crowded = st.text("aAbB._- é1", min_size=1, max_size=4)
long = st.sampled_from(["x" * 70, "x" * 71, "x." * 40, "é" * 65])
names = st.lists(crowded | long | st.text(st.characters(), max_size=8), max_size=8)


def allowed(name: str, rules: NameRules) -> bool:
    shape = rf"[{rules.first or rules.allowed}][{rules.allowed}]*"
    return len(name) <= rules.max_length and re.fullmatch(shape, name) is not None


@pytest.mark.parametrize("rules", RULES, ids=["openai", "gemini", "caseless", "short"])
@given(names=names)
def test_wire_names_are_allowed_and_unique_and_decodable(names: list[str], rules: NameRules) -> None:
    mapped = NameMap(names, rules)
    wire = {name: mapped.encode(name) for name in names}
    assert all(allowed(name, rules) for name in wire.values())
    assert len({rules.key(name) for name in wire.values()}) == len(wire)
    assert {name: mapped.decode(sent) for name, sent in wire.items()} == {name: name for name in names}


@given(names=names, data=st.data())
def test_map_does_not_depend_on_order_and_duplicates(names: list[str], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(names))
    first, second = NameMap(names, CASELESS), NameMap(shuffled + names[:2], CASELESS)
    assert [first.encode(name) for name in names] == [second.encode(name) for name in names]


@given(names)
def test_allowed_name_is_unchanged(names: list[str]) -> None:
    mapped = NameMap(names, OPENAI)
    assert all(mapped.encode(name) == name for name in names if allowed(name, OPENAI))


@given(names, st.text(max_size=20))
def test_name_of_an_old_call_gets_an_unused_wire_name(names: list[str], old: str) -> None:
    mapped = NameMap(names, OPENAI)
    sent = mapped.encode(old)
    assert allowed(sent, OPENAI)
    assert old in names or sent not in [mapped.encode(name) for name in names]


CASES = [
    (OPENAI, ["math.circle_area"], ["math_circle_area"]),
    (OPENAI, ["a.b", "a_b"], ["a_b_", "a_b"]),
    (OPENAI, ["a.b", "a b"], ["a_b_", "a_b_"]),
    (OPENAI, ["x" * 65], ["x" * 64]),
    (OPENAI, ["x" * 65, "x" * 66], ["x" * 55 + "_", "x" * 55 + "_"]),
    (OPENAI, ["Find", "find"], ["Find", "find"]),
    (CASELESS, ["Find", "find"], ["Find", "find_"]),
    (GEMINI, ["math.area", "3d"], ["math.area", "_3d"]),
]


@pytest.mark.parametrize(("rules", "names", "starts"), CASES)
def test_wire_names_are_readable(rules: NameRules, names: list[str], starts: list[str]) -> None:
    mapped = NameMap(names, rules)
    for name, start in zip(names, starts, strict=True):
        sent = mapped.encode(name)
        hashed = r"[0-9a-f]{8}" if start.endswith("_") else ""
        assert re.fullmatch(re.escape(start) + hashed, sent), (name, sent)


def test_winner_of_two_allowed_names_does_not_depend_on_order() -> None:
    for names in (["find", "Find"], ["Find", "find"]):
        assert NameMap(names, CASELESS).encode("Find") == "Find"


def test_name_equal_to_a_hashed_name_is_unchanged() -> None:
    hashed = NameMap(["a.b", "a b"], OPENAI).encode("a.b")
    crowd = NameMap(["a.b", "a b", hashed], OPENAI)
    assert crowd.encode(hashed) == hashed
    assert crowd.encode("a.b") not in (hashed, "a_b")
    assert crowd.decode(crowd.encode("a.b")) == "a.b"


def test_unknown_wire_name_is_unchanged() -> None:
    assert NameMap(["a.b"], OPENAI).decode("c_d") == "c_d"


def test_case_insensitive_wire_gets_distinct_names() -> None:
    assert NameMap(["db.Find"], CASELESS).decode("DB_FIND") == "db.Find"
    assert NameMap(["db.Find"], OPENAI).decode("DB_FIND") == "DB_FIND"


@pytest.mark.parametrize(
    "options", [{"max_length": 8}, {"allowed": "a-z"}, {"first": "a-z"}, {"replacement": "."}, {"prefix": ""}]
)
def test_contradicting_rules_raise(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"allow 16|Choose others"):
        NameRules(**options)  # type: ignore[arg-type]
