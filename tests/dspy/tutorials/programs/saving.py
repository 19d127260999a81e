"""Save an optimized program: its state as a file and as a dict, and the whole program as a folder."""

import json

import dspy

dspy.configure(lm=dspy.LM("openai/gpt-4o-mini"))

trainset = [
    dspy.Example(question="What is the color of grass?", answer="green").with_inputs("question"),
    dspy.Example(question="What is the color of coal?", answer="black").with_inputs("question"),
]


def metric(example, pred, trace=None):
    return isinstance(pred.answer, str)


program = dspy.ChainOfThought("question -> answer")
optimizer = dspy.BootstrapFewShot(metric=metric, max_bootstrapped_demos=4, max_labeled_demos=4, max_rounds=5)
compiled = optimizer.compile(program, trainset=trainset)


def is_equal(loaded):
    pairs = zip(compiled.predict.demos, loaded.predict.demos, strict=True)
    return str(compiled.predict.signature) == str(loaded.predict.signature) and all(
        dict(ours.toDict()) == dict(theirs) for ours, theirs in pairs
    )


compiled.save("program.json", save_program=False)
from_file = dspy.ChainOfThought("question -> answer")
from_file.load("program.json")

state = json.loads(json.dumps(compiled.dump_state()))
from_dict = dspy.ChainOfThought("question -> answer")
from_dict.load_state(state)

compiled.save("./whole/", save_program=True)
whole = dspy.load("./whole/", allow_pickle=True)

results = {
    "demos": len(compiled.predict.demos) > 0,
    "file": is_equal(from_file),
    "dict": is_equal(from_dict),
    "whole": is_equal(whole) and isinstance(whole, dspy.ChainOfThought),
    "runs": whole(question="What is the color of snow?").answer
    == from_file(question="What is the color of snow?").answer,
}
