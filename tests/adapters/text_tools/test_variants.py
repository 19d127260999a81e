"""Variants of the dialects' forms: spellings, repaired damage, errors, typed values, prose.

Each text is read whole and in chunks.
"""

from __future__ import annotations

from typing import Any

import pytest

from sigwire.adapters.text_tools import ScanResult, TextReader, read_calls

INTEGER = {"type": "integer"}
TOOLS: dict[str, Any] = {
    "add": {"type": "object", "properties": {"a": INTEGER, "b": INTEGER}},
    "say": {"type": "object", "properties": {"text": {"type": "string"}}},
    "set": {
        "properties": {
            "n": {"type": ["integer", "null"]},
            "s": {"anyOf": [{"type": "string"}, INTEGER]},
            "e": {"enum": [1, 2]},
            "o": {"type": "object"},
            "l": {"type": "array"},
            "f": {"type": "boolean"},
        }
    },
    "Stock Pulse API": {"properties": {"kind": {"type": "string"}}},
    "User Feed (Video Posts) V2": {"properties": {"username": {"type": "string"}}},
    "video.search": {"properties": {"q": {"type": "string"}}},
}
CALL = '{"name": "add", "arguments": {"a": 1, "b": 2}}'
PARAMETERS = '{"name": "add", "parameters": {"a": 1, "b": 2}}'
TYPED = '{"type": "function", "name": "add", "parameters": {"a": 1, "b": 2}}'
PAIR = '{"a": 1, "b": 2}'
ENCODED = '{"name": "add", "arguments": "{\\"a\\": 1, \\"b\\": 2}"}'
QWEN = "<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n</parameter>\n</function>"
INVOKE = '<invoke name="add">\n<parameter name="a">1</parameter>\n<parameter name="b">2</parameter>\n</invoke>\n'
LEGACY = "<invoke>\n<tool_name>add</tool_name>\n<parameters>\n<a>1</a>\n<b>2</b>\n</parameters>\n</invoke>\n"
GLM = "<arg_key>a</arg_key><arg_value>1</arg_value><arg_key>b</arg_key><arg_value>2</arg_value>"
V3 = f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{PAIR}\n```"
DSML = (
    '<｜DSML｜invoke name="add"><｜DSML｜parameter name="a" string="false">1</｜DSML｜parameter>'
    '<｜DSML｜parameter name="b" string="false">2</｜DSML｜parameter></｜DSML｜invoke>'
)
STEP = INVOKE.replace("invoke", "steptml:invoke").replace("parameter", "steptml:parameter")
STEP_OPEN = STEP.removesuffix("</steptml:invoke>\n")
HARMONY = f"<|start|>assistant<|channel|>commentary to=functions.add<|message|>{PAIR}<|call|>"


def kimi(id: str) -> str:
    return f"<|tool_call_begin|>{id}<|tool_call_argument_begin|>{PAIR}"


def read(text: str, **options: Any) -> ScanResult:
    """Read the text whole, and check that the result in chunks is equal."""
    whole = read_calls(text, TOOLS, **options)
    reader = TextReader(TOOLS, **options)
    for character in text:
        reader.feed(character)
    reader.close()
    assert reader.scan == whole
    return whole


def calls_of(scan: ScanResult) -> list[Any]:
    return [(call.name, call.error.code if call.error else call.arguments) for call in scan.calls]


ADD = ("add", {"a": 1, "b": 2})

# --- one call in its variants -----------------------------------------------------------------------------------------

VARIANTS = {
    "fenced, over several lines": '~~~tool_call\n{\n  "name": "add",\n  "arguments": {"a": 1,\n "b": 2}\n}\n~~~',
    "fenced, CRLF": f"~~~tool_call\r\n{CALL}\r\n~~~\r\n",
    "fenced, blanks after the marks": f"~~~tool_call  \n{CALL}\n~~~  ",
    "fenced, arguments as a string": f"~~~tool_call\n{ENCODED}\n~~~",
    "hermes, arguments first": '<tool_call>{"arguments": {"a": 1, "b": 2}, "name": "add"}</tool_call>',
    "hermes, no closing tag": f"<tool_call>{CALL}",
    "hermes, no opening tag": f"{CALL}</tool_call>",
    "hermes, tag doubled": f"<tool_call><tool_call>{CALL}</tool_call>",
    "hermes, a brace too many": f"<tool_call>{CALL}}}</tool_call>",
    "hermes, a brace missing": f"<tool_call>{CALL[:-1]}</tool_call>",
    "hermes, a fence inside": f"<tool_call>\n```json\n{CALL}\n```\n</tool_call>",
    "hermes, a list": f"<tool_call>[{CALL}]</tool_call>",
    "hermes, arguments as a string": f"<tool_call>{ENCODED}</tool_call>",
    "hermes, a wrapper": f'<tool_call>{{"tool_calls": [{CALL}]}}</tool_call>',
    "hermes, args": f"<tool_call>{CALL.replace('arguments', 'args')}</tool_call>",
    "hermes, parameters": f"<tool_call>{PARAMETERS}</tool_call>",
    "hermes, trailing comma": f"<tool_call>{CALL[:-1]},}}</tool_call>",
    "hermes, single quotes": f"<tool_call>{CALL}</tool_call>".replace('"', "'"),
    "hermes, unquoted keys": '<tool_call>{name: "add", arguments: {a: 1, b: 2}}</tool_call>',
    "hermes, a prefixed name": f"<tool_call>{CALL.replace('add', 'functions.add')}</tool_call>",
    "qwen3_coder, no outer tag": f"{QWEN}\n</tool_call>",
    "qwen3_coder, no closing function": f"<tool_call>\n{QWEN.removesuffix('</function>')}</tool_call>",
    "qwen3_coder, a parameter not closed": f"<tool_call>\n{QWEN.replace('</parameter>', '', 1)}\n</tool_call>",
    "qwen3_coder, the last one not closed": f"<tool_call>{QWEN[:-25]}</function></tool_call>",
    "qwen3_coder, on one line": f"<tool_call>{QWEN}</tool_call>".replace("\n", ""),
    "qwen3_coder, quoted names": f"<tool_call>{QWEN}</tool_call>".replace("=add", '="add"').replace("=a>", '="a">'),
    "seed_oss": f"<seed:think>hm</seed:think><seed:tool_call>{QWEN}</seed:tool_call>",
    "glm45, no line breaks": f"<tool_call>add{GLM}</tool_call>",
    "glm45, line breaks as two characters": f"<tool_call>add{GLM}</tool_call>".replace("<arg", "\\n<arg"),
    "glm45, an object for the pairs": f"<tool_call>add\n{PAIR}\n</tool_call>",
    "glm45, no opening tag": f"add{GLM}</tool_call>",
    "hunyuan": f"<tool_calls>\n<tool_call>add<tool_sep>{GLM}</tool_call>\n</tool_calls>",
    "minimax, no outer end": f"<minimax:tool_call>\n{INVOKE}",
    "anthropic_legacy, no outer end": f"<function_calls>\n{INVOKE}",
    "anthropic_legacy, first form without an end": f"<function_calls>\n{LEGACY}",
    "llama3_json, arguments": f"<|python_tag|>{CALL}",
    "llama3_json, with a type": f"<|python_tag|>{TYPED}",
    "llama3_json, no tag": PARAMETERS,
    "llama3_json, no tag and a type": TYPED,
    "llama3_json, a header left": f"<|start_header_id|>assistant<|end_header_id|>\n\n{PARAMETERS}<|eot_id|>",
    "llama4_pythonic, no end": "<|python_start|>[add(a=1, b=2)]",
    "llama4_pythonic, no start": "[add(a=1, b=2)]<|python_end|>",
    "llama4_pythonic, no brackets": "<|python_start|>add(a=1, b=2)<|python_end|>",
    "llama4_pythonic, JSON": f"<|python_start|>{PARAMETERS}<|python_end|>",
    "gemma, a list": "```tool_code\n[add(a=1, b=2)]\n```",
    "gemma, bare": "```tool_code\nadd(a=1, b=2)\n```",
    "gemma, after thought": "<|channel>thought\nhm<channel|><|tool_call>call:add{a:1,b:2}<tool_call|>",
    "mistral_old, closed": f"[TOOL_CALLS] [{CALL}] [/TOOL_CALLS]",
    "mistral_old, one object": f"[TOOL_CALLS]{CALL}",
    "mistral_old, half a mark": f"TOOL_CALLS][{CALL}]",
    "mistral_v11, no mark before the arguments": f"[TOOL_CALLS]add{PAIR}",
    "mistral_v11, no mark at all": f"add[ARGS]{PAIR}",
    "mistral_v11, after thought": f"[THINK]hm[/THINK][TOOL_CALLS]add[ARGS]{PAIR}",
    "deepseek_v3, nothing closed": f"<｜tool▁calls▁begin｜>{V3}",
    "deepseek_v3, with ASCII bars": f"<｜tool▁calls▁begin｜>{V3}<｜tool▁call▁end｜><｜end▁of▁sentence｜>".replace(
        "｜", "|"
    ),
    "deepseek_v31, with underscores": f"<｜tool_calls_begin｜><｜tool_call_begin｜>add<｜tool_sep｜>{PAIR}<｜tool_call_end｜>",
    "deepseek_v31, no mark of the call": f"<｜tool▁calls▁begin｜>add<｜tool▁sep｜>{PAIR}<｜tool▁call▁end｜>",
    "deepseek_dsml, V3.2": f"<｜DSML｜function_calls>\n{DSML}\n</｜DSML｜function_calls>",
    "deepseek_dsml, an object for the parameters": f'<｜DSML｜invoke name="add">\n{PAIR}\n</｜DSML｜invoke>',
    "kimi_k2, in a section": f"<|tool_calls_section_begin|>{kimi('functions.add:0')}<|tool_call_end|>"
    "<|tool_calls_section_end|>",
    "kimi_k2, with blanks": kimi(" functions.add:0 \n") + " <|tool_call_end|>",
    "kimi_k2, nothing closed": kimi("functions.add:0"),
    "kimi_k2, no prefix": kimi("add:0") + "<|tool_call_end|>",
    "kimi_k2, no number": kimi("functions.add") + "<|tool_call_end|>",
    "kimi_k2, only a number that one tool can mean": kimi("0") + "<|tool_call_end|>",
    "granite, in hermes' tag": f"<tool_call>[{CALL}]",
    "phi4, in a tag": f"<|tool_call|>[{CALL}]<|/tool_call|>",
    "phi4, one object": f"functools{CALL}",
    "internlm, apart": f"<|action_start|> <|plugin|>\n{PARAMETERS}<|action_end|>",
    "jamba, in lines": f"<tool_calls>[\n    {CALL}\n]</tool_calls>",
    "minimax, M1": f"<tool_calls>\n{CALL}\n</tool_calls>",
    "nemotron, one object": f"<TOOLCALL>{CALL}</TOOLCALL>",
    "command_r, with an id": f'<|START_THINKING|>hm<|END_THINKING|><|START_ACTION|>[{{"tool_call_id": "0", "tool_name": "add", '
    f'"parameters": {PAIR}}}]<|END_ACTION|>',
    "harmony, no end": f"<|channel|>commentary to=functions.add <|constrain|>json<|message|>{PAIR}",
    "harmony, on the analysis channel": f"<|channel|>analysis to=functions.add<|message|>{PAIR}<|call|>",
    "harmony, stripped of tokens": f"commentary to=functions.add json{PAIR}",
    "xlam, after thought": f"<think>hm</think>\n[{CALL}]",
    "xlam, in a fence": f"```json\n[{CALL}]\n```",
    "bare_json, tool_name": CALL.replace('"name"', '"tool_name"'),
    "bare_json, arguments as a string": ENCODED,
    "bare_json, a turn's end after it": f"{CALL}<|im_end|>",
    "llama4_pythonic, a turn's end after it": "[add(a=1, b=2)]<|eot|>",
    "llama4_pythonic, a message's end after it": f"<|python_start|>{PARAMETERS}<|python_end|><|eom|>",
    "xlam, a thought before the calls": f'{{"thought": "I add {{1}}.", "tool_calls": [{CALL}]}}',
    "xlam, a thought after the calls": f'{{"tool_calls": [{CALL}], "thought": "I add."}}',
    "lfm2, JSON": f"<|tool_call_start|>[{CALL}]<|tool_call_end|>",
    "step3, one tag only": STEP,
    "step3, an object for the parameters": f'<steptml:invoke name="add">{PAIR}</steptml:invoke>',
    "step3, no end of the invocation": f"<｜tool_call_begin｜>function<｜tool_sep｜>{STEP_OPEN}<｜tool_call_end｜>",
    "in an xml fence": f"```xml\n<tool_call>{CALL}</tool_call>\n```",
    "in a text fence": f"```text\n<tool_call>{CALL}</tool_call>\n```",
    "in a python fence": "```python\n[add(a=1, b=2)]\n```",
    "after thought that the prompt opened": f"hm\n</think>\n<tool_call>{CALL}</tool_call>",
    "in thought that never ends": f"<think>hm <tool_call>{CALL}</tool_call>",
}


@pytest.mark.parametrize("what", VARIANTS)
def test_variant_of_a_call_is_read(what: str) -> None:
    assert calls_of(read(VARIANTS[what])) == [ADD]


# --- several calls, and text between them ------------------------------------------------------------------------

SEVERAL = {
    "fenced, words between": (f"x\n~~~tool_call\n{CALL}\n~~~\ny\n~~~tool_call\n{CALL}\n~~~\nz", "x y z"),
    "hermes, two in a tag": (f"<tool_call>{CALL}\n{CALL}</tool_call>", ""),
    "hermes, the first not closed": (f"<tool_call>{CALL}\n<tool_call>{CALL}</tool_call>", ""),
    "minimax": (f"<minimax:tool_call>\n{INVOKE * 2}</minimax:tool_call>", ""),
    "anthropic_legacy": (f"<function_calls>\n{LEGACY * 2}</function_calls>", ""),
    "llama3_json, a semicolon": (f"<|python_tag|>{PARAMETERS}; {PARAMETERS}", ""),
    "llama3_json, lines": (f"<|python_tag|>{PARAMETERS}\n{PARAMETERS}", ""),
    "llama3_json, no tag": (f"{PARAMETERS}; {PARAMETERS}", ""),
    "pythonic": ("[add(a=1, b=2), add(a=1, b=2)]", ""),
    "gemma": ("```tool_code\nadd(a=1, b=2)\nprint(default_api.add(a=1, b=2))\n```", ""),
    "gemma 4": ("<|tool_call>call:add{a:1,b:2}<tool_call|><|tool_call>call:add{a:1,b:2}<tool_call|>", ""),
    "mistral_old, text after": (f"[TOOL_CALLS] [{CALL}, {CALL}] then text", "then text"),
    "mistral_v11": (f"[TOOL_CALLS]add[ARGS]{PAIR}[TOOL_CALLS]add[ARGS]{PAIR}", ""),
    "deepseek_v3": (f"<｜tool▁calls▁begin｜>{V3}<｜tool▁call▁end｜>\n{V3}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", ""),
    "deepseek_v31, ends lost": (f"<｜tool▁call▁begin｜>add<｜tool▁sep｜>{PAIR}" * 2, ""),
    "deepseek_dsml": (f"<｜DSML｜tool_calls>{DSML * 2}</｜DSML｜tool_calls>", ""),
    "kimi_k2": ("".join(kimi(f"functions.add:{n}") + "<|tool_call_end|>" for n in (0, 1)), ""),
    "granite, text after": (f"<|tool_call|>[{CALL}, {CALL}] text after", "text after"),
    "granite 20b": (f"<function_call> {CALL}\n<function_call> {CALL}", ""),
    "minimax, M1": (f"<tool_calls>\n{CALL}\n{CALL}\n</tool_calls>", ""),
    "functionary 3.2": (f"add\n{PAIR}\n>>>add\n{PAIR}", ""),
    "functionary 3.2, behind words": (f"Sure.>>>add\n{PAIR}\n>>>add\n{PAIR}", "Sure."),
    "functionary 3.2, behind a message to the user": (f">>>all\nSure.>>>add\n{PAIR}>>>add\n{PAIR}", "Sure."),
    "functionary 3.2, a message to the user": (f">>>all\nSure.\n>>>add\n{PAIR}\n>>>add\n{PAIR}", "Sure."),
    "md_json, in a fence": (f"```json\n{CALL}\n{CALL}\n```", ""),
    "md_json, in two": (f"```json\n{CALL}\n```\n```json\n{CALL}\n```", ""),
    "lfm2, text after": ("<|tool_call_start|>[add(a=1, b=2), add(a=1, b=2)]<|tool_call_end|>Done.", "Done."),
    "apertus": (f'<|tools_prefix|>[{{"add": {PAIR}}}, {{"add": {PAIR}}}]<|tools_suffix|>', ""),
    "hunyuan": (f"<tool_calls><tool_call>add{GLM}</tool_call><tool_call>add{GLM}</tool_call></tool_calls>", ""),
    "step3": (f"<｜tool_calls_begin｜>{f'<｜tool_call_begin｜>function<｜tool_sep｜>{STEP}<｜tool_call_end｜>' * 2}", ""),
    "step3, in one call": (f"<｜tool_call_begin｜>function<｜tool_sep｜>{STEP * 2}<｜tool_call_end｜>", ""),
    "harmony": (f"<|channel|>commentary<|message|>I look.<|end|>{HARMONY * 2}", "I look."),
    "invented results": (f"<tool_call>{CALL}</tool_call><tool_call>{CALL}</tool_call><tool_response>3</tool_response>.", ""),
    "words in Anthropic's tool's place": (f"<function_calls>{INVOKE * 2}</function_calls><function_results>3", ""),
}  # fmt: skip


@pytest.mark.parametrize("what", SEVERAL)
def test_several_calls_are_read_and_only_prose_is_text(what: str) -> None:
    text, words = SEVERAL[what]
    found = read(text)
    assert (calls_of(found), found.text.split()) == ([ADD, ADD], words.split())


# --- names and values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('[Stock Pulse API(kind="up"), User Feed (Video Posts) V2(username="ana")]',
         [("Stock Pulse API", {"kind": "up"}), ("User Feed (Video Posts) V2", {"username": "ana"})]),
        ("[say(text='\\ud83d\\ude00')]", [("say", {"text": "😀"})]),
        ('[video.search(q="x")]', [("video.search", {"q": "x"})]),
        ("[say(text='a, b)] (c')]", [("say", {"text": "a, b)] (c"})]),
        ("[say(text='x\ny')]", [("say", {"text": "x\ny"})]),
        ('[say(text="""a"b""")]', [("say", {"text": 'a"b'})]),
        ('```tool_code\nsay(text="""a\nb""")\n```', [("say", {"text": "a\nb"})]),
        ("[set(f=true, n=null, o={'a': None}, l=[1, 'x'])]",
         [("set", {"f": True, "n": None, "o": {"a": None}, "l": [1, "x"]})]),
        ('<tool_call>{"name": "add", "arguments": {"a": "5"}}</tool_call>', [("add", {"a": "5"})]),
        ('<tool_call>{"name": "say", "arguments": {"text": "a</tool_call>b"}}</tool_call>',
         [("say", {"text": "a</tool_call>b"})]),
        ('<tool_call>{"name": "say", "arguments": {"text": "\\ud83d\\ude00"}}</tool_call>', [("say", {"text": "😀"})]),
        ('~~~tool_call\n{"name": "say", "arguments": {"text": "a\\n~~~\\nb"}}\n~~~', [("say", {"text": "a\n~~~\nb"})]),
        ('<｜DSML｜invoke name="say"><｜DSML｜parameter name="text" string="true">12</｜DSML｜parameter></｜DSML｜invoke>',
         [("say", {"text": "12"})]),
        ("<start_function_call>call:say{text:<escape>42<escape>}<end_function_call>", [("say", {"text": "42"})]),
        ('<|tool_call>call:say{text:<|"|>a}, {b<|"|>}<tool_call|>', [("say", {"text": "a}, {b"})]),
        ('<|tool_call>call:set{o:{x:"y",z:[1,2]},f:true}<tool_call|>', [("set", {"o": {"x": "y", "z": [1, 2]}, "f": True})]),
        ('<function name="say"><param name="text"><![CDATA[a</param>b]]></param></function>',
         [("say", {"text": "a</param>b"})]),
        ('<steptml:invoke name="say"><steptml:parameter name="text">if a < b: 1</steptml:parameter></steptml:invoke>',
         [("say", {"text": "if a < b: 1"})]),
    ],
)  # fmt: skip
def test_names_and_values_are_verbatim(text: str, calls: Any) -> None:
    assert calls_of(read(text)) == calls


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("s", "12345", 12345), ("s", "five", "five"), ("n", "null", None), ("n", "5", 5), ("n", "five", "five"), ("e", "1", 1),
        ("o", "{'a': True}", {"a": True}), ("o", '{"a": 1}', {"a": 1}), ("l", "[1, 'x']", [1, "x"]), ("f", "True", True),
        ("f", "true", True), ("unknown", "7", "7"),
    ],
)  # fmt: skip
def test_text_between_tags_is_typed_by_its_schema(name: str, text: str, value: Any) -> None:
    for form in (
        f"<tool_call><function=set><parameter={name}>\n{text}\n</parameter></function></tool_call>",
        f"<tool_call>set<arg_key>{name}</arg_key><arg_value>{text}</arg_value></tool_call>",
        f'<minimax:tool_call><invoke name="set"><parameter name="{name}">{text}</parameter></invoke></minimax:tool_call>',
        f'<steptml:invoke name="set"><steptml:parameter name="{name}">{text}</steptml:parameter></steptml:invoke>',
    ):
        assert calls_of(read(form)) == [("set", {name: value})]


@pytest.mark.parametrize("text", ["12345", "null", '{"a": 1}', "  indented\n\n  line  ", "a &lt; b <c>", "\n\nx\n\n"])
def test_string_between_tags_is_verbatim(text: str) -> None:
    for form in (
        f"<tool_call><function=say><parameter=text>\n{text}\n</parameter></function></tool_call>",
        f"<tool_call>say<arg_key>text</arg_key><arg_value>{text}</arg_value></tool_call>",
        f'<function_calls><invoke name="say"><parameter name="text">{text}</parameter></invoke></function_calls>',
        f"<function_calls><invoke><tool_name>say</tool_name><parameters><text>{text}</text></parameters></invoke>",
    ):
        assert calls_of(read(form)) == [("say", {"text": text})]


# --- errors ----------------------------------------------------------------------------------------------------------

MALFORMED, UNKNOWN = ("add", "malformed_json"), "unknown_tool"
REFUSED = {
    "fenced, parameters": (f"~~~tool_call\n{PARAMETERS}\n~~~", [MALFORMED]),
    "fenced, two objects": (f"~~~tool_call\n{CALL}\n{CALL}\n~~~", [("tool_call", "malformed_json")]),
    "fenced, Python": ('~~~tool_call\n{"name": "set", "arguments": {"f": True}}\n~~~', [("tool_call", "malformed_json")]),
    "fenced, no closing fence": (f"~~~tool_call\n{CALL[:-1]}", [("tool_call", "malformed_json")]),
    "a near name": ('<tool_call>{"name": "addd", "arguments": {}}</tool_call>', [("addd", UNKNOWN)]),
    "encoded twice": ('<tool_call>{"name": "say", "arguments": "\\"{}\\""}</tool_call>', [("say", "not_an_object")]),
    "no witness for the missing brace": (f"<tool_call>{CALL[:-1]}", [MALFORMED]),
    "a bad sibling": (f'<tool_call>[{CALL}, {{"name": "add", "arguments": {{"a": }}}}]</tool_call>', [ADD, MALFORMED]),
    "a list that was cut": (f'<tool_call>[{CALL}, {{"name": "add"', [ADD, MALFORMED]),
    "a bad line of M1": (f'<tool_calls>\n{CALL}\n{{"name": "add", "arguments": {{"a": }}}}\n{CALL}\n</tool_calls>',
                         [ADD, MALFORMED, ADD]),
    "an argument that is no literal": ("<|python_start|>[add(a=1, b=2), add(a=f(x))]<|python_end|>", [ADD, MALFORMED]),
    "a closed argument, but no closed call": ("<tool_call><function=add><parameter=a>1</parameter>", [MALFORMED]),
    "the same of step3": (f"<｜tool_call_begin｜>function<｜tool_sep｜>{STEP_OPEN}", [MALFORMED]),
    "a number that several tools can mean": ("<|tool_call_begin|>0<|tool_call_argument_begin|>{}<|tool_call_end|>",
                                             [("tool_call", "malformed_json")]),
    "harmony, cut before the body": ("<|channel|>commentary to=functions.add<|message|>", [MALFORMED]),
    "harmony, nobody's tool": ("<|channel|>commentary to=python<|message|>print(1)<|call|>", [("python", UNKNOWN)]),
    "a number beyond all": ('<tool_call>{"name": "add", "arguments": {"a": 1e999}}</tool_call>', [MALFORMED]),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_malformed_call_is_an_error_and_its_neighbours_are_read(what: str) -> None:
    text, calls = REFUSED[what]
    assert calls_of(read(text)) == calls


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('<tool_call>{"name": "add", "arguments": null}</tool_call>', [("add", {})]),
        ('<tool_call>{"name": "add"}</tool_call>', [("add", {})]),
        ('~~~tool_call\n{"name": "add", "arguments": ""}\n~~~', [("add", {})]),
        ('~~~tool_call\n{"name": "nobody", "arguments": {}}\n~~~', [("nobody", {})]),
        ("<tool_call>add</tool_call>", [("add", {})]),
        ("<|channel|>commentary to=functions.add<|message|><|call|>", [("add", {})]),
        ('<|START_ACTION|>[{"tool_name": "directly_answer", "parameters": {}}]<|END_ACTION|>', []),
    ],
)
def test_missing_arguments_are_an_empty_object(text: str, calls: Any) -> None:
    found = read(text)
    assert (calls_of(found), found.text) == (calls, "")


# --- prose ------------------------------------------------------------------------------------------------------------

PROSE = [
    f"`<tool_call>`{CALL}`</tool_call>` is the form", f"&lt;tool_call&gt;{CALL}&lt;/tool_call&gt;",
    's = "~~~tool_call\\n{}\\n~~~"', f"+~~~tool_call\n+{CALL}\n+~~~", f"~~~tool_caller\n{CALL}\n~~~\nx",
    f"~~~tool_call X\n{CALL}\n~~~\nx", f"~~~tool_calls\n{CALL}\n~~~\nx", f"> ~~~tool_call\n> {CALL}\n> ~~~",
    '{"name": "add", "status": "ok"}', '{"name": "add"}', '{"name": "add", "version": "1", "arguments": {}}',
    '{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "add", "arguments": {}}}',
    f'{{"examples": [{CALL}]}}', f'{{"answer": {CALL}}}', f'{{"choices": [{{"message": {CALL}}}]}}',
    '{"name": "add", "description": "x", "parameters": {"type": "object", "properties": {}}}',
    '<tools>{"type": "function", "function": {"name": "add", "parameters": {}}}</tools>',
    '<tool_response>{"name": "add", "content": "3"}</tool_response>', f"{CALL}\nis the call", f"Sure: {CALL}",
    "results = [add(a=1)]", "[add(a=x) for x in y]", "def add(a=1):\n    pass", ">>> add(a=1)", "[add(1, 2)]",
    "functools.partial(add, a=1)", "functools is a module", "$ add(a=1)", "{{ add(a=1) }}", "[1, 2, 3]",
    "[special delivery]", "[add](http://x)", "- [ ] add\n- [x] say", "[INFO] add(a=1) took 12ms",
    "name: add\narguments:\n  a: 1", '{"name": "add_v2", "arguments": {}}', '{"name": "Add", "arguments": {}}',
    f"<think>{CALL}</think>ok", "<tool_", "[TOOL", "~~", "```python\nadd(a=1)\n```",
    "```python\n[add(a=1)]\nprint(1)\n```", f"```bash\n{CALL}\n```", f"```json\n{CALL}\n```\nshows it",
    "<|python_tag|>import os\nprint(1)", ">>>all good", ">>>all", ">>>all \n", "add\nis a tool",
]  # fmt: skip
MARKED = [
    "<tool_call> tags", "<tool_calls> hold <tool_call> tags", "<function=name> in HTML", "<function=...>",
    "<function=...> is", '<function name="x">', "[TOOL_CALLS] are", "TOOL_CALLS] is", "[ARGS] and [CALL_ID]",
    '<steptml:invoke name="add"> is', "<｜tool_call_begin｜>function<｜tool_sep｜> begins it", "<｜tool▁calls▁begin｜> is",
    "<｜DSML｜invoke> is", "<minimax:tool_call> is", '<invoke name="add"> opens', "<invoke> is", "<function_calls> is",
    "<start_function_call> is", "call:add{a:1} is", "<|channel|> is", "to=functions.add is how", "to=functions.name",
    "<|python_tag|> is", "<|python_start|> is", "<|tool_call|> is", "<function_call> is", "Action: look",
    "<|START_ACTION|> is", "<TOOLCALL> is", "<|tools_prefix|> is", "<|action_start|> is", "<|tool_call_begin|> is",
    "<|tool_calls_section_begin|> is", "<|tool_call_start|> is", "<|tool_call> is",
]  # fmt: skip


@pytest.mark.parametrize("text", [*PROSE, *MARKED, *(f"The {text} a mark." for text in MARKED)])
def test_prose_about_calls_is_text(text: str) -> None:
    found = read(text)
    assert (found.calls, found.text) == ((), text)


@pytest.mark.parametrize("text", [*VARIANTS.values(), *(text for text, _ in SEVERAL.values())])
def test_no_call_is_read_without_offered_tools(text: str) -> None:
    assert read_calls(text, ()) == ScanResult(text)
