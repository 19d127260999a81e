"""DSPy's ``RLM``: fields of its prompts, names of tools, the record of its turns, and inputs that are no JSON."""

from __future__ import annotations

import base64
from typing import Any

import pytest

import sigwire.dspy as dspy
from sigwire import ConfigurationError, ContextWindowExceededError, FakeLM
from sigwire.dspy.primitives.interpreters import CodeInterpreterError
from sigwire.dspy.primitives.repl_types import REPLHistory, SandboxSetup


class Script:
    """An interpreter that returns prepared values, and records what it ran."""

    execution_instructions = "Only the script runs."

    def __init__(self, *values: Any) -> None:
        self.values, self.tools = list(values), dict[str, Any]()
        self.ran: list[tuple[str, dict[str, Any]]] = []
        self.is_open = True

    def start(self) -> None: ...

    def execute(self, code: str, variables: dict[str, Any] | None = None) -> Any:
        self.ran.append((code, dict(variables or {})))
        value = self.values.pop(0)
        if isinstance(value, Exception):
            raise value
        return value

    def shutdown(self) -> None:
        self.is_open = False


class Turns:
    """A predictor of the caller: it has the fields of DSPy and no signature."""

    def __init__(self, *codes: str) -> None:
        self.codes, self.asked = list(codes), list[dict[str, Any]]()

    def __call__(self, **inputs: Any) -> dspy.Prediction:
        self.asked.append(inputs)
        return dspy.Prediction(reasoning=f"turn {len(self.asked)}", code=self.codes.pop(0))


def weigh(thing: str) -> float:
    """Return the weight of a thing."""
    return len(thing) / 2


# --- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("signature", ["SUBMIT -> a", "print, q -> a", "q -> trajectory", "q -> final_reasoning"])
def test_names_of_the_session_and_the_result_are_refused_for_fields(signature: str) -> None:
    with pytest.raises(ConfigurationError, match="itself"):
        dspy.RLM(signature)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("weigh-it", "identifier"), ("2nd", "identifier"), ("while", "not a keyword"),
        ("SUBMIT", "conflicts"), ("print", "conflicts"), ("llm_query_batched", "conflicts"),
    ],
)  # fmt: skip
def test_names_of_tools_are_those_of_free_functions(name: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        dspy.RLM("q -> a", tools=[dspy.Tool(weigh, name=name)])


@pytest.mark.parametrize(
    ("tools", "problem"), [({"weigh": weigh}, "a list, not a dict"), ([weigh, 7], "callable, not 7")]
)
def test_tools_are_a_list_of_functions(tools: Any, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        dspy.RLM("q -> a", tools=tools)


# --- prompts ---------------------------------------------------------------------------------------


def test_signatures_have_the_fields_of_dspy_and_name_what_code_can_use() -> None:
    reader = dspy.RLM("letters, year -> sender, topics: list[str]", tools=[weigh], interpreter_factory=Script)
    turn, last = reader.generate_action.signature, reader.extract.signature
    assert list(turn.input_fields) == ["variables_info", "repl_history", "iteration"]
    assert list(turn.output_fields) == ["reasoning", "code"]
    for text in (
        "`letters`",
        "`topics`",
        "def SUBMIT(sender: str",
        "def weigh(",
        "llm_query_batched",
        "Only the script",
    ):
        assert text in turn.instructions
    assert set(last.input_fields) == {"variables_info", "repl_history"}
    assert list(last.output_fields) == ["sender", "topics"]


def test_a_predictor_of_the_caller_gets_the_variables_the_turns_and_their_number() -> None:
    class Letters(dspy.Signature):
        """Find the sender."""

        letters: str = dspy.InputField(desc="all of 1931")
        sender: str = dspy.OutputField()

    script = Script("two", dspy.CodeExecutionError("NameError: x"), dspy.FinalOutput({"sender": "Ida"}))
    reader: Any = dspy.RLM(Letters, max_iters=4, interpreter_factory=lambda: script)
    reader.generate_action = turns = Turns("look()", "```py\nx\n```", "SUBMIT('Ida')")
    result = reader(letters="Dear Ida")
    assert (result.sender, result.final_reasoning, script.is_open) == ("Ida", "turn 3", False)
    assert [asked["iteration"] for asked in turns.asked] == ["1/4", "2/4", "3/4"]
    assert "Description: all of 1931" in turns.asked[0]["variables_info"]
    assert [entry.output for entry in turns.asked[2]["repl_history"]] == ["two", "[Error] NameError: x"]
    assert [row["code"] for row in result.trajectory] == ["look()", "x", "SUBMIT('Ida')"]


def test_a_block_of_another_language_is_not_run() -> None:
    script = Script(dspy.FinalOutput({"a": "done"}))
    reader: Any = dspy.RLM("q -> a", interpreter_factory=lambda: script)
    reader.generate_action = turns = Turns("```sql\nselect 1\n```", "SUBMIT('done')")
    result = reader(q="?")
    assert [code for code, _ in script.ran] == ["SUBMIT('done')"]
    assert result.trajectory[0]["output"].startswith("[Error] The block of code is sql")
    assert turns.asked[1]["repl_history"].entries[0].code == "```sql\nselect 1\n```"


def test_long_results_are_shortened_when_the_conversation_is_too_long() -> None:
    class Narrow(Turns):
        def __call__(self, **inputs: Any) -> dspy.Prediction:
            if len(inputs["repl_history"].format()) > 900:
                raise ContextWindowExceededError("too long", provider="test", model="narrow")
            return super().__call__(**inputs)

    script = Script("a" * 2000 + "z" * 2000, dspy.FinalOutput({"a": "done"}))
    reader: Any = dspy.RLM("q -> a", interpreter_factory=lambda: script)
    reader.generate_action = turns = Narrow("print(page)", "SUBMIT('done')")
    result = reader(q="?")
    shown = turns.asked[1]["repl_history"].format()
    assert ("a" * 200 in shown, "z" * 200 in shown, "omitted" in shown) == (True, True, True)
    assert len(result.trajectory[0]["output"]) == 4000


def test_a_conversation_that_stays_too_long_is_extracted() -> None:
    def full(**inputs: Any) -> dspy.Prediction:
        raise ContextWindowExceededError("too long", provider="test", model="narrow")

    reader: Any = dspy.RLM("q -> a", interpreter_factory=Script)
    reader.generate_action = full
    reader.extract.set_lm(FakeLM([{"a": "guess"}]))
    assert reader(q="?").a == "guess"


def test_demos_of_turns_are_saved_and_loaded(tmp_path: Any) -> None:
    reader, other = dspy.RLM("q -> a"), dspy.RLM("q -> a")
    turns = REPLHistory().append(code="len(q)", output="1")
    facts = {"variables_info": "q", "repl_history": turns, "iteration": "2/20", "reasoning": "r", "code": "SUBMIT(q)"}
    reader.generate_action.demos = [dspy.Example(**facts)]
    reader.save(tmp_path / "reader.json")
    other.load(tmp_path / "reader.json")
    other.set_lm(lm := FakeLM([{"reasoning": "r", "code": "SUBMIT(a=q)"}]))
    assert other(q="?").a == "?"
    assert any(turns.format() in message.text for message in lm.requests[0].messages)


# --- interpreters ----------------------------------------------------------------------------------


def test_a_call_may_have_its_own_factory() -> None:
    own, other = Script(dspy.FinalOutput({"a": "own"})), Script(dspy.FinalOutput({"a": "other"}))
    reader: Any = dspy.RLM("q -> a", interpreter_factory=lambda: other)
    reader.generate_action = Turns("SUBMIT(q)", "SUBMIT(q)")
    assert reader(q="?", interpreter_factory=lambda: own).a == "own"
    assert (own.is_open, reader(q="?").a) == (False, "other")
    reader.generate_action = Turns("SUBMIT(q)")
    other.values.append(dspy.FinalOutput({"a": "later"}))
    for given in ({"interpreter_factory": lambda: own}, {}):
        with pytest.raises(dspy.InputError):
            reader(*([] if given else [own]), **given)
    assert reader(q="?").a == "later"
    with pytest.raises(TypeError, match="not a str"):
        reader(q="?", interpreter_factory="monty")


@pytest.mark.parametrize("made", [dspy.RLM, dspy.ProgramOfThought, dspy.CodeAct])
def test_an_interpreter_by_name_is_refused_unless_it_is_an_input(made: Any) -> None:
    with pytest.raises(TypeError, match="first positional argument"):
        made("q -> a")(q="?", interpreter=Script())
    with pytest.raises(TypeError, match="unexpected keyword argument 'interpreter'"):
        made("q -> a", interpreter=Script())


def test_programs_are_asked_from_predictors_of_the_caller() -> None:
    script = Script("4")
    think: Any = dspy.ProgramOfThought("interpreter -> a", interpreter_factory=lambda: script)
    think.code_generate = lambda interpreter: dspy.Prediction(generated_code=f"print({interpreter!r})")
    think.generate_output = lambda **inputs: dspy.Prediction(a=inputs["code_output"])
    assert think(interpreter="CPython").a == "4"
    assert script.ran[0][0] == "print('CPython')"


# --- inputs that are no JSON ------------------------------------------------------------------------


class Table(dspy.SandboxSerializable):
    def __init__(self, data: bytes, setup: str = "import csv") -> None:
        self.data, self.setup = data, setup

    def sandbox_setup(self) -> str:
        return self.setup

    def to_sandbox(self) -> bytes:
        return self.data

    def sandbox_assignment(self, var_name: str, data_expr: str) -> str:
        return f"{var_name} = [row.split(',') for row in {data_expr}.split()]"

    def rlm_preview(self, max_chars: int = 500) -> str:
        return f"a table of {len(self.data)} bytes"


class Counting(dspy.Signature):
    table: Table = dspy.InputField(desc="names and counts")
    n: int = dspy.OutputField()


def test_an_object_is_made_by_its_own_code_before_the_first_turn() -> None:
    reader: Any = dspy.RLM(Counting)
    reader.generate_action = turns = Turns("print(len(table))", "SUBMIT(n=int(table[1][1]))")
    result = reader(table=Table(b"a,1 b,42"))
    assert (result.n, result.trajectory[0]["output"]) == (42, "2")
    info = turns.asked[0]["variables_info"]
    assert ("a table of 8 bytes" in info, "import csv" in info, "names and counts" in info) == (True, True, True)


def test_an_object_whose_code_fails_ends_the_run() -> None:
    reader: Any = dspy.RLM(Counting)
    reader.generate_action = Turns("SUBMIT(n=1)")
    with pytest.raises(CodeInterpreterError, match="cannot make the inputs"):
        reader(table=Table(b"", "import pandas_of_another_place"))


def test_binary_data_is_carried_as_base64() -> None:
    made = SandboxSetup.of({"t": Table(b"\xff\x00", "")})
    assert made.variables == {"_raw_t_base64": base64.b64encode(b"\xff\x00").decode()}
    assert made.code.startswith("import base64\n_raw_t = base64.b64decode(_raw_t_base64)\nt = ")
