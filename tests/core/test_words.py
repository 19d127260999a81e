"""``WordIndex``: texts ranked by their words."""

from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.words import WordIndex, words_of

TEXTS = st.lists(st.text("abcd _.É7", max_size=30), max_size=12)


def index_of(*texts: str) -> WordIndex[int]:
    index = WordIndex[int]()
    for number, text in enumerate(texts):
        index.add(number, text)
    return index


def keys(index: WordIndex[int], query: str, count: int = 9) -> list[int]:
    return [key for key, _ in index.search(query, count)]


def test_words_are_split_at_underscores_dots_and_capitals_and_lose_suffixes() -> None:
    assert words_of("getHTTPReply_2.loading cities") == ["get", "http", "reply", "2", "load", "citi"]
    assert words_of("Überfälle, Straßen: 天气") == ["überfäll", "straßen", "天", "气"]


def test_rare_words_count_more_than_frequent_ones() -> None:
    assert keys(index_of("the cat", "the dog", "the bird", "a bird"), "the bird dog") == [1, 2, 3, 0]


def test_text_given_twice_counts_twice() -> None:
    index = WordIndex[str]()
    index.add("once", "mail", "letter")
    index.add("twice", "mail", "mail")
    assert [key for key, _ in index.search("mail", 2)] == ["twice", "once"]


def test_entry_without_a_word_of_the_query_is_not_found() -> None:
    assert keys(index_of("cat", ""), "dog") == []
    assert keys(WordIndex[int](), "dog") == []


def test_first_of_equal_entries_is_first() -> None:
    assert keys(index_of("red", "cat", "red", "red"), "red", 2) == [0, 2]


def test_words_of_most_texts_rank_nothing_among_many_texts() -> None:
    index = index_of(*(f"the word{number} of" for number in range(200)))
    assert len(index.search("the number 7 word", 9)) == 1
    assert len(index.search("the", 9)) == 9


@given(TEXTS, TEXTS, st.text("abcd 7", max_size=10))
def test_index_that_grew_finds_what_an_index_of_all_texts_finds(first: list[str], more: list[str], query: str) -> None:
    grown = index_of(*first)
    grown.search(query, 3)
    for number, text in enumerate(more, len(first)):
        grown.add(number, text)
    assert grown.search(query, 9) == index_of(*first, *more).search(query, 9)
    assert len(grown) == len(first) + len(more)
