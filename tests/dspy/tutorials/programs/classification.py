"""Sort bank messages by topic: a typed label, an evaluation, demos by search, and the same evaluation again."""

import random
from typing import Literal

import dspy

TOPICS = ["card_lost", "transfer_late", "fee_question"]
MESSAGES = {
    "card_lost": ["I lost my card on the bus", "my card was stolen", "the card is gone, please block it"],
    "transfer_late": ["my transfer has not arrived", "the transfer is late again", "where is the transfer I sent"],
    "fee_question": ["why was I charged a fee", "which fee applies abroad", "explain this monthly fee"],
}

data = [
    dspy.Example(text=text, hint=topic, label=topic).with_inputs("text", "hint")
    for topic, texts in MESSAGES.items()
    for text in texts
]
random.Random(0).shuffle(data)
trainset = data[:6]
devset = [dspy.Example(text=example.text, label=example.label).with_inputs("text") for example in data[6:]]

dspy.configure(lm=dspy.LM("openai/gpt-4o-mini"))

signature = dspy.Signature("text -> label").with_updated_fields("label", type_=Literal[tuple(TOPICS)])
classify = dspy.ChainOfThought(signature)
first = classify(**devset[0].inputs())


def accuracy(example, pred, trace=None):
    return int(example.label == pred.label)


evaluate = dspy.evaluate.Evaluate(devset=devset, num_threads=2, display_progress=False, display_table=0)
before = evaluate(classify, metric=accuracy)

optimizer = dspy.BootstrapFewShotWithRandomSearch(
    metric=accuracy, max_bootstrapped_demos=2, max_labeled_demos=4, num_candidate_programs=2, num_threads=2
)
optimized = optimizer.compile(classify, trainset=[example.with_inputs("text") for example in trainset])
after = evaluate(optimized, metric=accuracy)

results = {
    "first": first.label in TOPICS and bool(first.reasoning),
    "scores": (0 <= before.score <= 100, after.score >= before.score),
    "outputs": [prediction.label in TOPICS for _, prediction, _ in after.results],
    "student": classify.predictors()[0].demos,
}
