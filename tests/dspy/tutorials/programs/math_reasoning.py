"""Solve sums: an evaluation, an optimizer with a teacher and a prompt model, and the evaluation again."""

import dspy

gpt4o_mini = dspy.LM("openai/gpt-4o-mini", max_tokens=2000)
gpt4o = dspy.LM("openai/gpt-4o", max_tokens=2000)
dspy.configure(lm=gpt4o_mini)


class Dataset:
    def __init__(self):
        sums = [(first, second) for first in range(2, 5) for second in range(6, 8)]
        self.train = [self._example(*numbers) for numbers in sums[:4]]
        self.dev = [self._example(*numbers) for numbers in sums[4:]]

    def _example(self, first, second):
        made = dspy.Example(question=f"What is {first} + {second}?", reasoning="Add.", answer=str(first + second))
        return made.with_inputs("question")

    def metric(self, example, pred, trace=None):
        return example.answer.strip() == pred.answer.strip()


dataset = Dataset()
module = dspy.ChainOfThought("question -> answer")
first = module(question=dataset.train[0].question)

kwargs = {"num_threads": 2, "display_progress": False, "display_table": 0}
evaluate = dspy.Evaluate(devset=dataset.dev, metric=dataset.metric, **kwargs)
before = evaluate(module)

kwargs = {"num_threads": 2, "teacher_settings": {"lm": gpt4o}, "prompt_model": gpt4o_mini}
optimizer = dspy.MIPROv2(metric=dataset.metric, auto=None, num_candidates=2, **kwargs)
kwargs = {"max_bootstrapped_demos": 2, "max_labeled_demos": 2}
optimized = optimizer.compile(
    module, trainset=dataset.train, valset=dataset.dev, num_trials=2, minibatch=False, **kwargs
)
after = evaluate(optimized)
dspy.inspect_history()

results = {
    "first": isinstance(first.answer, str) and bool(first.reasoning),
    "scores": after.score >= before.score,
    "rows": len(after.results) == len(dataset.dev),
    "optimized": isinstance(optimized, dspy.ChainOfThought) and optimized is not module,
}
