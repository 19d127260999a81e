"""Types that type checkers infer for sigwire.dspy. Checked by mypy and pyright (strict), never run."""

from __future__ import annotations

from typing import Any, assert_type

import sigwire
import sigwire.dspy as dspy


class Rate(dspy.Signature):
    review: str = dspy.InputField()
    stars: int = dspy.OutputField()


# Names that only the door has, names with DSPy's shape, names of the core.
lm = dspy.LM("openai/gpt-4.1", "responses", 0.5)
assert_type(lm.model_type, str)
assert_type(lm.supports_function_calling, bool)
assert_type(dspy.DummyLM([{"answer": "4"}]).follow_examples, bool)
assert_type(dspy.Example(question="?"), sigwire.Example)
assert_type(dspy.ToolCalls.from_dict_list([{"name": "add"}]), dspy.ToolCalls)
assert_type(dspy.Tool(len, name="size").arg_types, dict[str, Any])
assert_type(dspy.ChatAdapter(use_native_function_calling=False).native_tools, bool | None)
assert_type(dspy.evaluate.metrics.f1_score("a", "b"), float)
assert_type(dspy.evaluate.answer_exact_match(dspy.Example(answer="4"), dspy.Prediction(answer="4")), bool)
assert_type(dspy.evaluate.SemanticF1(0.7), sigwire.SemanticF1)
dspy.LM("openai/gpt-4.1", "responses", "hot")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# Signatures type predictors as they do in the core; the door's methods are there.
rate = dspy.Predict(Rate)
assert_type(rate(review="Lovely.").stars, int)
assert_type(rate.get_config(), dict[str, Any])
assert_type(dspy.ChainOfThought(Rate)(review="Lovely.").stars, int)
agent_result = dspy.ReAct(Rate, tools=[len])(review="Lovely.")
assert_type(agent_result.stars, int)
assert_type(dspy.AgentRun.of(agent_result).trajectory, dict[str, Any])
prediction: dspy.Prediction = agent_result
rate(text="x")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
by_text = dspy.Predict("question -> answer")
by_text.update_config(temperature=1.0)
assert_type(by_text(question="?"), sigwire.Prediction)

core: sigwire.Predict[..., Any] = rate
model: sigwire.LanguageModel = lm


class Shop(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rate = dspy.Predict(Rate)

    def forward(self, review: str) -> int:
        return self.rate(review=review).stars


assert_type(Shop().reset_copy(), Shop)

stream = dspy.streamify(Shop(), stream_listeners=[dspy.streaming.StreamListener("stars")], async_streaming=False)
for item in stream(review="Lovely."):
    if isinstance(item, dspy.StreamResponse):
        assert_type(item.chunk, str)
