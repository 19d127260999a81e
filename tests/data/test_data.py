"""Files to examples, splits without leakage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sigwire
from sigwire import Example, InputError
from sigwire.data.reading import load_examples
from sigwire.data.splitting import duplicates, leaked, split_examples

ROWS = [{"text": 'Ünïcode, "quoted"\nlines', "label": "a"}, {"text": "=1+1", "label": "b"}]


def written(folder: Path, suffix: str, rows: list[dict[str, Any]]) -> Path:
    path = folder / f"data{suffix}"
    if suffix in {".jsonl", ".ndjson"}:
        path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n", encoding="utf-8-sig")
    elif suffix == ".json":
        path.write_text(json.dumps(rows), encoding="utf-8")
    elif suffix == ".parquet":
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pa.Table.from_pylist(rows), path)
    else:
        import csv

        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, ["text", "label"], delimiter="\t" if suffix == ".tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet"])
def test_every_format_gives_the_same_examples(tmp_path: Path, suffix: str) -> None:
    found = load_examples(written(tmp_path, suffix, ROWS), inputs=["text"])
    assert found == [Example(row).with_inputs("text") for row in ROWS]


@pytest.mark.parametrize("name", ["nowhere.jsonl", "nowhere.csv", "nowhere.parquet", "folder.jsonl"])
def test_missing_file_is_an_input_error_with_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=rf"There is no file '{name}' \(reading examples in .*\)\. Pass its path"):
        load_examples(name)


def test_columns_are_renamed_chosen_and_limited() -> None:
    found = load_examples(ROWS, ["message"], fields={"message": "text"}, limit=1)
    assert [each.toDict() for each in found] == [{"message": ROWS[0]["text"]}]
    assert load_examples(ROWS, fields=["label"])[1].toDict() == {"label": "b"}


def test_data_set_of_hugging_face_is_read_as_rows() -> None:
    datasets = pytest.importorskip("datasets")
    assert load_examples(datasets.Dataset.from_list(ROWS), ["text"])[1].label == "b"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", '{"a": 1}\n{"a": \n', "line 2 is not JSON"),
        ("a.jsonl", '{"a": 1}\n[1]\n', "row 2 is no JSON object"),
        ("a.json", "[", "line 1 is not JSON"),
        ("a.csv", "a,b\n1\n", "line 2 has not one cell for each column"),
        ("a.csv", "a,b\n1,2,3\n", "line 2 has not one cell for each column"),
        ("a.jsonl", "", "has no rows"),
        ("a.jsonl", '{"quetsion": 1}\n', "Did you mean quetsion"),
    ],
)
def test_wrong_file_is_an_error_with_its_place(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(sigwire.InputError, match=message):
        load_examples(path, inputs=["question"])


def test_file_in_another_encoding_and_of_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("a\nö\n".encode("latin-1"))
    with pytest.raises(sigwire.InputError, match="is not UTF-8"):
        load_examples(tmp_path / "a.csv")
    with pytest.raises(sigwire.ConfigurationError, match="suffix that is not known"):
        load_examples(tmp_path / "a.xlsx")
    with pytest.raises(sigwire.InputError, match="no column 'c'"):
        load_examples(ROWS, fields=["c"])


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 6)), min_size=1, max_size=60),
    st.integers(0, 3),
    st.booleans(),
)
@pytest.mark.filterwarnings("ignore:.*equal to an earlier one")
def test_parts_have_every_example_once_and_no_leak(pairs: list[tuple[int, int]], seed: int, drop: bool) -> None:
    rows = [Example(q=str(q), user=user, at=at).with_inputs("q") for at, (q, user) in enumerate(pairs)]
    parts = split_examples(rows, seed=seed, by="user", drop_duplicates=drop)
    again = split_examples(rows, seed=seed, by="user", drop_duplicates=drop)
    assert parts == again
    whole = [*parts.train, *parts.dev, *parts.test]
    expected = len(rows) - (len(duplicates(rows)) if drop else 0)
    assert len({each.at for each in whole}) == len(whole) == expected
    for first, second in ((parts.train, parts.dev), (parts.train, parts.test), (parts.dev, parts.test)):
        assert leaked(first, second) == []
        assert {each.user for each in first}.isdisjoint(each.user for each in second)


def test_parts_have_their_shares_and_keep_the_order() -> None:
    rows = [Example(q=str(n)).with_inputs("q") for n in range(100)]
    parts = split_examples(rows, train=0.5, dev=0.5, test=0.0)
    assert (len(parts.train), len(parts.dev), len(parts.test)) == (50, 50, 0)
    assert [int(each.q) for each in parts.train] == sorted(int(each.q) for each in parts.train)
    assert split_examples(rows, seed=1).train != split_examples(rows, seed=2).train


def test_equal_examples_are_counted_and_warned_about() -> None:
    rows = [Example(q="Where is it?", a=1).with_inputs("q"), Example(q="where  is it?", a=2).with_inputs("q")]
    with pytest.warns(UserWarning, match="1 of 2 examples"):
        assert split_examples(rows).duplicates == 1
    assert split_examples(rows, drop_duplicates=True).duplicates == 1


def test_wrong_shares_are_refused() -> None:
    with pytest.raises(sigwire.ConfigurationError, match=r"1\.0 together, not 1\.2"):
        split_examples([Example(q=1)], train=0.6, dev=0.3, test=0.3)
    with pytest.raises(sigwire.InputError, match="no examples"):
        split_examples([])
