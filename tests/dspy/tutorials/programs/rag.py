"""Answer from documents: an embedder, a retriever of one's own, a judge as metric, demos, and a file of the result."""

from types import SimpleNamespace

import dspy
from dspy.evaluate import SemanticF1

CORPUS = [
    "Linux memory below 896 MB is low memory, and the kernel maps it directly.",
    "High memory is memory that the kernel maps only when it needs it.",
    "A hidden window does not appear in the switcher of macOS.",
    "A symbolic link stores the path of its target.",
]
QUESTIONS = {
    "what is low memory in linux?": "Memory below 896 MB that the kernel maps directly.",
    "what does a symbolic link store?": "The path of its target.",
    "when does the kernel map high memory?": "Only when it needs it.",
}

lm = dspy.LM("openai/gpt-4o-mini")
dspy.configure(lm=lm)

embedder = dspy.Embedder("openai/text-embedding-3-small", dimensions=256)
search = dspy.retrievers.Embeddings(embedder=embedder, corpus=CORPUS, k=2)


class FolderRetriever(dspy.Retrieve):
    """A retriever over files of one's own."""

    def __init__(self, folder, k=3):
        super().__init__(k=k)
        self.folder = folder

    def forward(self, query, k=None):
        words = set(query.lower().strip("?").split())
        found = sorted(self.folder, key=lambda text: -len(words & set(text.lower().strip(".").split())))
        return dspy.Prediction(passages=found[: k or self.k])


class RAG(dspy.Module):
    def __init__(self, retrieve=search):
        self.retrieve = retrieve
        self.respond = dspy.ChainOfThought("context, question -> response")

    def forward(self, question):
        context = self.retrieve(question).passages
        return self.respond(context=context, question=question)


examples = [dspy.Example(question=asked, response=said).with_inputs("question") for asked, said in QUESTIONS.items()]
metric = SemanticF1(decompositional=True)
rag = RAG()
answer = rag(question="what is low memory in linux?")
judged = metric(examples[0], answer)

evaluate = dspy.Evaluate(devset=examples, metric=metric, num_threads=2, display_progress=False)
score = evaluate(RAG(FolderRetriever(CORPUS, k=2)))

optimizer = dspy.BootstrapFewShot(metric=lambda example, pred, trace=None: True, max_bootstrapped_demos=2)
optimized = optimizer.compile(rag, trainset=examples)
optimized.save("optimized_rag.json")
loaded = RAG()
loaded.load("optimized_rag.json")
again = loaded(question="what is low memory in linux?")

with dspy.context(rm=lambda query, k, **options: [SimpleNamespace(long_text=text) for text in CORPUS[:k]]):
    configured = dspy.Retrieve(k=1)("anything").passages

results = {
    "passages": search("what is low memory in linux?").passages[0] == CORPUS[0],
    "own": FolderRetriever(CORPUS, k=1)("symbolic link").passages == [CORPUS[3]],
    "configured": configured == CORPUS[:1],
    "answer": isinstance(answer.response, str) and 0 <= float(judged) <= 1,
    "score": 0 <= score.score <= 100,
    "loaded": len(loaded.respond.predict.demos) == len(optimized.respond.predict.demos) > 0,
    "again": isinstance(again.response, str),
    "history": [set(entry) >= {"messages", "usage", "cost", "outputs"} for entry in lm.history[-2:]],
}
