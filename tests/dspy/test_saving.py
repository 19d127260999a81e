"""Reading files that DSPy saved."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import sigwire.dspy as dspy
from sigwire.dspy.agents import ReAct
from sigwire.dspy.modules import Module, Predict
from sigwire.dspy.saving import name_fields
from sigwire.errors import ConfigurationError, StateError
from sigwire.lm.base import BaseLM as CoreLM
from sigwire.modules import predict as core
from sigwire.signatures.signature import Signature

QA = Signature("question, k: int -> answer, score: float")


def add(a: int, b: int) -> int:
    return a + b


def state_of(count: int) -> dict[str, Any]:
    return {"instructions": "Old.", "fields": [{"prefix": f"P{n}:", "description": f"d{n}"} for n in range(count)]}


def part_of_dspy(*names: str) -> dict[str, Any]:
    fields = [{"prefix": f"{name}:", "description": f"${{{name}}}"} for name in names]
    signature = {"instructions": "Old.", "fields": fields}
    return {"traces": [], "train": [], "demos": [], "signature": signature, "lm": None}


AGENT_OF_DSPY = {
    "react": part_of_dspy("question", "trajectory", "next_thought", "next_tool_name", "next_tool_args"),
    "extract.predict": part_of_dspy("question", "trajectory", "reasoning", "answer"),
}


def test_an_agent_without_the_loop_in_text_loads_the_task_of_one_of_dspy_and_warns() -> None:
    agent = ReAct("question -> answer", tools=[add], text_loop=False)
    about_loop = agent.react.signature.instructions.removeprefix(agent.signature.instructions)
    demos = [{"question": "q", "next_thought": "Look."}]
    for task, learned in (("", agent.signature.instructions), ("Old.", "Old."), ("New.", "Old.")):
        text = f"{task}\n\nYou are an Agent. Write next_thought."
        signature = {**AGENT_OF_DSPY["react"]["signature"], "instructions": text}
        loop = {**AGENT_OF_DSPY["react"], "demos": demos, "signature": signature}
        with pytest.warns(UserWarning, match=r"next_tool_name.* if the task here was not changed"):
            agent.load_state({**AGENT_OF_DSPY, "react": loop})
        assert agent.react.signature.instructions == learned + about_loop
    assert agent.react.demos == demos
    assert agent.extract.predict.signature.instructions == "Old."


def test_an_agent_without_tools_saved_by_dspy_loads_its_loop() -> None:
    agent = ReAct("question -> answer", tools=[])
    agent.load_state(AGENT_OF_DSPY)
    assert agent.react.signature.instructions == agent.extract.predict.signature.instructions == "Old."


def test_fields_without_names_are_matched_by_position(tmp_path: Path) -> None:
    class Program(Module):
        def __init__(self) -> None:
            super().__init__()
            self.ask = Predict(QA)

    program, path = Program(), tmp_path / "program.json"
    state = {"traces": [], "train": [], "demos": [{"question": "q"}], "signature": state_of(4), "lm": None}
    path.write_text(json.dumps({"ask": state, "metadata": {"dependency_versions": {"dspy": "3.0.4"}}}))
    program.load(path)
    loaded = program.ask.signature
    assert loaded.instructions == "Old."
    assert [(spec.prefix, spec.description) for spec in loaded.spec.fields] == [(f"P{n}:", f"d{n}") for n in range(4)]
    assert program.ask.demos == [{"question": "q"}]


def test_a_state_written_by_dspy_loads_into_a_bare_predictor() -> None:
    fields = [{"prefix": "Question:", "description": "${question}"}, {"prefix": "Answer:", "description": "short"}]
    state: dict[str, Any] = {
        "traces": [],
        "train": [],
        "demos": [],
        "signature": {"instructions": "Old.", "fields": fields},
        "lm": None,
    }
    predict = Predict("question -> answer")
    predict.load_state({**state, "metadata": {"dependency_versions": {"dspy": "3.0.4"}}})
    assert predict.signature.instructions == "Old."
    assert predict.signature.spec.outputs[0].description == "short"


def test_a_state_with_another_number_of_fields_is_refused_and_changes_nothing() -> None:
    predict = Predict(QA)
    with pytest.raises(StateError, match=r"1 fields without names, and .* has 4"):
        predict.load_state({"signature": state_of(1)})
    assert predict.signature is QA


@pytest.mark.parametrize("fields", [["text"], "text", [{"name": "question", "prefix": "Q:"}]])
def test_a_state_of_the_core_and_one_of_wrong_types_are_left_to_the_core(fields: Any) -> None:
    assert name_fields(QA, {"fields": fields}) == {"fields": fields}


def test_the_core_refuses_fields_without_names_and_names_the_door() -> None:
    with pytest.raises(StateError, match=r"without names .*sigwire\.dspy"):
        core.Predict(QA).load_state({"signature": state_of(4)})


# --- files/*.json were written by DSPy 3.4.1: predictor, program, agent (ReAct), second_agent (ReActV2) ------------------

FILES = Path(__file__).parent / "files"


class Question(dspy.Signature):
    """Answer the question."""

    question: str = dspy.InputField(desc="what is asked")
    k: int = dspy.InputField()
    answer: str = dspy.OutputField()
    score: float = dspy.OutputField()


def search(query: str) -> str:
    return query


class Program(Module):
    def __init__(self) -> None:
        super().__init__()
        self.think = dspy.ChainOfThought("question -> answer")
        self.steps = [Predict(Question), core.Predict("a -> b: Literal['x', 'y']")]
        self.agent = ReAct("question -> answer", tools=[search])


@pytest.mark.filterwarnings("ignore:The saved model has api_base")
@pytest.mark.parametrize("trusted", [False, True])
def test_predictor_of_dspy_loads_texts_demos_and_model(trusted: bool) -> None:
    predict = Predict(Question)
    predict.load(FILES / "predictor.json", allow_unsafe_lm_state=trusted)
    assert predict.signature.instructions == "Learned."
    assert predict.signature.spec.outputs[0].description == "one word"
    assert predict.demos == [{"question": "1+1?", "k": 1, "answer": "2", "score": 1.0, "augmented": True}]
    assert (type(predict.lm), predict.lm.model) == (dspy.LM, "openai/gpt-4o-mini")
    assert predict.lm.kwargs == {"temperature": 0.3, "max_tokens": 500}
    assert predict.lm.base_url == ("http://localhost:9" if trusted else None)


def test_program_of_dspy_loads_every_part_but_the_text_about_the_loop() -> None:
    program = Program()
    program.agent = ReAct("question -> answer", tools=[search], text_loop=False)
    loop = program.agent.react.dump_state()
    with pytest.warns(UserWarning, match=r"saved loop of 'agent\.react'.*next_tool_name"):
        program.load(FILES / "program.json")
    assert [len(part.demos) for part in program.predictors()] == [0, 1, 0, 0, 0]
    assert program.think.predict.signature.instructions == "Given the fields `question`, produce the fields `answer`."
    assert program.agent.extract.predict.signature.instructions == program.think.predict.signature.instructions
    loop["signature"]["instructions"] = loop["signature"]["instructions"].replace(
        "Use `question` to write `answer`.", "Given the fields `question`, produce the fields `answer`."
    )
    assert program.agent.react.dump_state() == loop
    lm: Any = program.predictors()[1].lm
    assert (lm.model, lm.model_type, lm.cache, lm.num_retries) == ("openai/gpt-5-mini", "responses", False, 7)


@pytest.mark.filterwarnings("ignore:The saved model has api_base")
def test_agent_of_dspy_keeps_the_model_of_its_loop() -> None:
    agent = ReAct("question -> answer: int", tools=[search])
    agent.load(FILES / "agent.json")
    assert [part.lm.model for part in agent.predictors()] == ["openai/gpt-4o-mini"] * 2


def test_second_agent_of_dspy_loads_without_an_extraction() -> None:
    task = "Given the fields `question`, produce the fields `answer`."
    agent = ReAct(dspy.Signature("question -> answer", task), tools=[search])
    state = agent.dump_state()
    with pytest.warns(UserWarning, match="saved loop of 'react'"):
        agent.load(FILES / "second_agent.json")
    assert agent.dump_state() == state


@pytest.mark.filterwarnings("ignore:The saved model has api_base")
def test_model_class_of_a_user_in_a_file_of_dspy_is_not_imported() -> None:
    state = json.loads((FILES / "predictor.json").read_text())
    state["lm"]["_dspy_lm_class"] = "antigravity.LM"
    with pytest.raises(StateError, match="loading it would import code"):
        Predict(Question).load_state(state)


def test_field_with_a_name_of_the_loop_loads_as_any_field() -> None:
    fields = [{"prefix": "Q:", "description": "${q}"}, {"prefix": "Next:", "description": "${next_thought}"}]
    program = Module()
    program.ask = Predict("q -> next_thought")  # type: ignore[attr-defined]
    program.load_state({"ask": {"signature": {"instructions": "Old.", "fields": fields}, "demos": [], "lm": None}})
    assert program.predictors()[0].signature.instructions == "Old."


@pytest.mark.parametrize("state", [[], "text", {"react": 3, "extract.predict": {}}, {"react": {"signature": []}}])
def test_state_of_wrong_types_is_refused_by_an_agent(state: Any) -> None:
    with pytest.raises(StateError):
        ReAct("question -> answer", tools=[search]).load_state(state)


class Deadline(dspy.Signature):
    """Count."""

    today: date = dspy.InputField()
    due: date = dspy.InputField()
    days: int = dspy.OutputField(desc="days from today until due")


class DraftAndAnswer(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = dspy.ChainOfThought("question -> draft")
        self.second = dspy.Predict("draft -> answer: int")


def test_whole_program_is_loaded_from_its_folder_by_registered_classes(tmp_path: Path) -> None:
    program = DraftAndAnswer()
    program.second.demos = [dspy.Example(draft="two", answer=2)]
    program.save(tmp_path / "model.v1", save_program=True, modules_to_serialize=[json])
    with pytest.raises(StateError, match=r"pass classes=\[DraftAndAnswer\]"):
        dspy.load(tmp_path / "model.v1")
    loaded = dspy.load(tmp_path / "model.v1", classes=[DraftAndAnswer])
    assert type(loaded) is DraftAndAnswer
    assert loaded.dump_state() == program.dump_state()
    assert loaded.second.demos == program.second.demos  # records, as in the program that was saved
    metadata = json.loads((tmp_path / "model.v1" / "metadata.json").read_text())
    assert metadata["dependency_versions"].keys() == {"python"}
    assert metadata["sigwire"]


@pytest.mark.parametrize(
    "program",
    [
        dspy.MultiChainComparison("city -> river", M=2),
        dspy.Refine(dspy.Predict("city -> river"), N=2, reward_fn=max, threshold=1.0),
        dspy.BestOfN(dspy.Predict("city -> river"), N=2, reward_fn=max, threshold=1.0),
    ],
)
def test_module_around_modules_is_loaded_from_its_folder(program: dspy.Module, tmp_path: Path) -> None:
    program.predictors()[0].demos = [{"city": "Cairo", "river": "Nile"}]
    program.save(tmp_path, save_program=True)
    loaded = dspy.load(tmp_path, functions=[max])
    assert type(loaded) is type(program)
    assert loaded.predictors()[0].demos[0].river == "Nile"


def test_trusted_folder_may_name_any_class_of_the_process(tmp_path: Path) -> None:
    DraftAndAnswer().save(tmp_path, save_program=True)
    namesake = type("Predict", (dspy.Predict,), {"__module__": __name__})  # files mean the class of sigwire
    assert type(dspy.load(tmp_path, allow_pickle=True)) is DraftAndAnswer
    assert namesake in dspy.Predict.__subclasses__()


def test_trusted_folder_may_name_a_signature_with_changed_instructions(tmp_path: Path) -> None:
    program = Predict(Deadline)
    program.signature = program.signature.with_instructions("Count the days.")
    program.save(tmp_path, save_program=True)
    loaded = dspy.load(tmp_path, allow_pickle=True)
    assert isinstance(loaded, Predict)
    assert loaded.signature.equals(program.signature)


def test_process_that_wrote_a_folder_loads_the_same_classes(tmp_path: Path) -> None:
    class Deadline(dspy.Signature):  # a second class of this name
        """Name the day."""

        month: str = dspy.InputField()
        day: int = dspy.OutputField()

    program = dspy.ChainOfThought(Deadline)
    program.save(tmp_path / "typed", save_program=True)
    assert dspy.load(tmp_path / "typed", allow_pickle=True).predict.signature is program.predict.signature
    plain = Predict("question -> answer")
    plain.save(tmp_path / "plain", save_program=True)
    Predict("question -> answer").save(tmp_path / "other", save_program=True)
    assert dspy.load(tmp_path / "plain").signature is plain.signature
    changed = tmp_path / "plain" / "program.json"
    changed.write_text(changed.read_text().replace("to write `answer`", "to guess `answer`"))
    assert "guess" in dspy.load(tmp_path / "plain").signature.instructions


def test_state_is_never_loaded_from_a_pickle(tmp_path: Path) -> None:
    DraftAndAnswer().save(tmp_path / "p.json")
    DraftAndAnswer().load(tmp_path / "p.json", allow_pickle=True)
    with pytest.raises(StateError, match="Pickle files"):
        DraftAndAnswer().load(tmp_path / "p.pkl", allow_pickle=True)


@pytest.mark.parametrize("name", ["model.json", "model.pkl"])
def test_whole_program_is_not_saved_to_a_file(name: str, tmp_path: Path) -> None:
    with pytest.raises(StateError, match="must be a directory"):
        Predict("question -> answer").save(tmp_path / name, save_program=True)


def test_folder_without_a_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"holds no program\.json"):
        dspy.load(tmp_path)


@pytest.mark.parametrize("option", ["api_base", "base_url"])
def test_endpoint_in_a_state_is_a_warning_and_is_loaded_only_if_trusted(option: str) -> None:
    state = Predict("question -> answer", lm=dspy.LM("openai/gpt-4o-mini")).dump_state()
    state["lm"][option] = "http://localhost:9/v1"
    with pytest.warns(UserWarning, match=f"{option}, which would get your key"):
        loaded = Predict("question -> answer").load_state(state)
    with pytest.raises(ConfigurationError, match=r"copy\(base_url=\.\.\.\)"):
        loaded(question="q")  # not sent to the provider's host, and not saved as if it were meant
    with pytest.raises(StateError, match="another host"):
        loaded.dump_state()
    trusted = Predict("question -> answer").load_state(state, allow_unsafe_lm_state=True)
    assert trusted.lm.dump_state()["base_url"] == "http://localhost:9/v1"


class PlacedLM(dspy.BaseLM):
    def __init__(self, model: str, *, place: str, **options: Any) -> None:
        super().__init__(model, **options)
        self.place = place

    def dump_state(self) -> Any:
        return {**super().dump_state(), "place": self.place}

    @classmethod
    def load_state(cls, state: Any) -> Any:  # type: ignore[override]
        return cls(**{name: value for name, value in state.items() if name != dspy.clients.base_lm.LM_CLASS_STATE_KEY})


def test_load_state_of_a_model_may_have_the_arguments_of_dspy() -> None:
    state = Predict("question -> answer", lm=PlacedLM("m", place="here")).dump_state()
    with pytest.raises(StateError):
        Predict("question -> answer").load_state(state)
    loaded = Predict("question -> answer").load_state(state, allow_unsafe_lm_state=True)
    assert (type(loaded.lm), loaded.lm.place) == (PlacedLM, "here")


def test_state_of_a_model_has_the_keys_of_dspy_and_makes_the_model_again(tmp_path: Path) -> None:
    lm = dspy.LM("openai/gpt-5-mini", max_tokens=16_900, num_retries=1)
    state = lm.dump_state()
    options = {name: value for name, value in state.items() if name != dspy.clients.base_lm.LM_CLASS_STATE_KEY}
    assert state.keys() - options.keys() == {"class"}
    assert (state["class"], options["finetuning_model"], options["launch_kwargs"]) == ("dspy.clients.lm.LM", None, {})
    predict = dspy.Predict("city -> river")
    predict.lm = lm
    predict.save(tmp_path, save_program=True)
    made = [dspy.LM(**options), dspy.LM.load_state(state), CoreLM.load_state(state), dspy.load(tmp_path).lm]
    assert [(type(each), each.dump_state()) for each in made] == [(dspy.LM, state)] * 4


def test_an_agent_is_saved_whole_with_its_tools(tmp_path: Path) -> None:
    for name, tools in (("none", []), ("add", [add])):
        ReAct("question -> answer", tools=tools, max_iters=3).save(tmp_path / name, save_program=True)
        loaded: Any = dspy.load(tmp_path / name, functions=[add])
        assert (type(loaded), loaded.max_iters, set(loaded.tools)) == (
            ReAct, 3, {"add", *loaded.tools} if tools else set(loaded.tools)
        )  # fmt: skip
        assert ("add" in loaded.tools) is bool(tools)


def test_a_module_with_a_signature_as_text_beside_an_agent_loads(tmp_path: Path) -> None:
    class Desk(Module):
        def __init__(self) -> None:
            super().__init__()
            self.signature = "question -> answer"
            self.react = ReAct(self.signature, tools=[add])

    Desk().save(tmp_path / "desk.json")
    Desk().load(tmp_path / "desk.json")
