"""Sounds by DSPy's arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import sigwire.dspy as dspy

URI = "data:audio/wav;base64,dGVh"


class Samples(list[float]):
    """An array as ``numpy`` has it, as far as a sound uses one."""

    shape = (2,)

    def __iter__(self) -> Iterator[float]:
        return super().__iter__()


@pytest.mark.parametrize(
    "source", [{"data": "dGVh", "audio_format": "wav"}, URI, dspy.Audio(b"tea", audio_format="wav")]
)
def test_sound_with_its_own_format_takes_no_other_one(source: Any) -> None:
    assert dspy.Audio(source) == dspy.Audio(b"tea", audio_format="wav")
    for error in (TypeError, ValueError):
        with pytest.raises(error, match="Leave audio_format out"):
            dspy.Audio(source, audio_format="mp3")


def test_sampling_rate_is_an_option_of_arrays() -> None:
    assert dspy.Audio(Samples([0.0, 0.5]), sampling_rate=8000) == dspy.Audio.from_array([0.0, 0.5], 8000)
    for source in (b"tea", URI):
        with pytest.raises(TypeError, match="an option of arrays"):
            dspy.Audio(source, sampling_rate=8000)


@pytest.mark.parametrize(
    ("place", "reader"),
    [("clip.wav", r"Audio\.from_path"), ("https://a.b/c.wav", r"Audio\.from_url\(url, fetch=True\)")],
)
def test_error_of_a_path_or_a_url_names_the_method_for_its_kind(place: str, reader: str) -> None:
    with pytest.raises(ValueError, match=reader):
        dspy.Audio(place, audio_format="wav")


def test_base64_text_is_a_sound() -> None:
    assert dspy.Audio("dGVh", audio_format="mp3") == dspy.Audio(data=b"tea", audio_format="mp3")
