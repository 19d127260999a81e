"""Texts that look like calls and are none: emitted unchanged, whole and in chunks."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from sigwire.adapters.text_tools import TextReader, read_calls

TOOLS: dict[str, Any] = {
    "ping": {"type": "object", "properties": {}},
    "find": {"type": "object", "properties": {"text": {"type": "string"}}},
}
WEAK = [
    "[ping()]",
    "[find(text='x'), ping()]",
    '{"name": "ping", "arguments": {}}',
    '{"name": "find", "parameters": {"text": "x"}}',
    '[{"name": "ping", "arguments": {}}]',
]
PLACES = [
    "- {}", "1. {}", "# {}", "// {}", "* {}", "**{}**", "_{}_", "| x | {} |", "Term\n: {}", "<p>{}</p>",
    "<!--\n{}\n-->", "<pre>\n{}\n</pre>", "<answer>\n{}\n</answer>", "({})", '"{}"', "“{}”", "„{}“", "«{}»", "「{}」",
    "{}.", "{}。", "{}！", "{}?", "{}  # so", "{}\nDone.", "{}\n\n---", "{}\n\n*Note*", "calls = {}", "result: {}", "Call: {}",
    "For example: {}", ">>> {}", "$ {}", "\\{}", "→ {}", "User: {}", "Assistant: {}", "[1, {}]", "x{}", "{}x",
    "\\[{}\\]", "$${}$$", "calls:\n  - {}", "> {}", "> a\n{}\n> b", "<think>hm {}", "hm\n{}\n</think>\nok",
    "[THINK]{}[/THINK]ok", "<seed:think>\n{}\n</seed:think>ok", "```python\nx = 1\n{}\n```",
    "```js\n{}\n```", "```bash\n{}\n```",
    "```yaml\n{}\n```", "```diff\n+ {}\n```", "```sh\n{}", "~~~python\nx = 1\n{}\n~~~", "```json\n{}\n```\nis how it looks.",
    "```json\n{}\n```\nor\n```json\n{}\n```\n?", "say\u2028{}", "say\u0085{}", "say\x0b{}", "\u00a0{}", "\u200b{}", "｛{}｝",
    "{}<|im_end|>\nuser: hi",
]  # fmt: skip
PROSE = [
    "<tool_call> and </tool_call> wrap JSON.", "Inside <tool_call>…</tool_call> goes {\"name\": …}.",
    "«<tool_call>» ist das Zeichen, „[TOOL_CALLS]“ das andere.", "模型输出 <tool_call>，然后是 JSON。「[TOOL_CALLS]」も。",
    "He wrote [ping()] and {\"name\": \"ping\"} in one line.", "See [ping](https://x.y/ping) and [find].", "[ping] [find]",
    "ping() returns nothing.", "print(ping())", "\nfind(text='ls')\n", '{"name": "Alice", "arguments": "none"}',
    "[nobody(x=1)]",
    '[{"name": "Bob"}, {"name": "Eve"}]', "functools is a module; functools.partial too.", "functools[0] raises.",
    "import functools\nfunctools.reduce(f, [1])", "<function=…> is how Qwen does it.", "<function_calls> is plural.",
    "<invoke> me",
    "Action: run away!", "Action:\nThe hero runs.", "Thought: hm\nAction: ping the host\nAction Input: none of it",
    "~~~tool_caller\n{}\n~~~", "~~~\n{\"name\": \"ping\"}\n~~~\nis plain.", "> ~~~tool_call\n> {\"name\": \"ping\"}\n> ~~~",
    "to=functions.ping is an address", "commentary to=functions.ping and so on", "<|channel|> is a token of harmony",
    "<|im_end|> ends a turn in ChatML.", "</s> and <s> and <|eot_id|> are tokens.", "The token <|python_tag|> precedes code.",
    "<tool_calls>", "</tool_call>", "<tool_call", "<tool_call>", "x [TOOL_CALLS]\ny",
    "<｜DSML｜ is DeepSeek's", "｜tool▁sep｜ alone",
    '{"thought": "ping", "tool_calls": []}', '{"thought": "ping", "name": "ping", "arguments": {}}', "a >>> b", "x>>>ping me",
    "x >>>ping\n{}\nis how",
    ">>>ping me", ">>> ping()\nTrue", "ping\n{}\nis how one does it", "ping[ARGS]", "<|START_ACTION|> begins",
    "<|action_start|> begins", "call:ping is a label", "I'd use call:find{text} maybe", "<ping/>", "<ping></ping>",
    "<parameter=text>x</parameter>", "<arg_key>text</arg_key>", "</function>", '<tools>[{"name": "ping"}]</tools> listed',
    '<tool_response>{"name": "ping"}</tool_response> came', '{"tool": "ping"}', '{"tool_calls": []}', "[]", "{}", "[[ping()]]",
    "{{ping()}}", "${ping()}", "<% ping() %>", "a < b and c > d; <tool_ is no tag",
]  # fmt: skip


def _assert_is_prose(text: str) -> None:
    whole = read_calls(text, TOOLS)
    assert (whole.calls, whole.text, whole.reasoning) == ((), text, "")
    for size in (1, 3, 7):
        reader = TextReader(TOOLS)
        for at in range(0, len(text), size):
            reader.feed(text[at : at + size])
        reader.close()
        assert reader.scan == whole, size


@pytest.mark.parametrize("place", PLACES)
def test_form_without_a_marker_is_a_call_only_on_the_last_lines(place: str) -> None:
    for form in WEAK:
        _assert_is_prose(place.replace("{}", form))


@pytest.mark.parametrize("text", PROSE)
def test_prose_about_calls_has_no_calls(text: str) -> None:
    _assert_is_prose(text)


@pytest.mark.parametrize("form", WEAK)
def test_form_is_a_call_at_the_end_of_a_message(form: str) -> None:
    for before, after in product(["", "Sure:\n"], ["", "\n", "<|im_end|>"]):
        found = read_calls(before + form + after, TOOLS)
        assert {call.name for call in found.calls} <= set(TOOLS)
        assert found.calls
        assert not any(call.error for call in found.calls)
