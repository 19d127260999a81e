"""Stream a program: the text of outputs, messages about progress, and the prediction; awaited and blocking."""

import asyncio

import dspy

dspy.configure(lm=dspy.LM("openai/gpt-4o-mini", cache=False))

predict = dspy.Predict("question -> answer")
stream_predict = dspy.streamify(
    predict, stream_listeners=[dspy.streaming.StreamListener(signature_field_name="answer")]
)


async def read(output):
    chunks, statuses, value = [], [], None
    async for item in output:
        if isinstance(item, dspy.streaming.StreamResponse):
            chunks.append(item)
        elif isinstance(item, dspy.streaming.StatusMessage):
            statuses.append(item.message)
        elif isinstance(item, dspy.Prediction):
            value = item
    return chunks, statuses, value


chunks, _, prediction = asyncio.run(read(stream_predict(question="Why did the hen cross the yard?")))


class TwoSteps(dspy.Module):
    def __init__(self):
        super().__init__()
        self.predict1 = dspy.Predict("question -> answer")
        self.predict2 = dspy.Predict("question, draft -> answer, score")

    def forward(self, question, **kwargs):
        draft = self.predict1(question=question).answer
        return self.predict2(question=question, draft=draft)


program = TwoSteps()
listeners = [
    dspy.streaming.StreamListener(signature_field_name="answer", predict=getattr(program, name), predict_name=name)
    for name in ("predict1", "predict2")
]
both, _, _ = asyncio.run(read(dspy.streamify(program, stream_listeners=listeners)(question="Why?")))


class Doubling(dspy.Module):
    def __init__(self):
        super().__init__()
        self.tool = dspy.Tool(lambda x: 2 * x, name="double_the_number")
        self.predict = dspy.ChainOfThought("num1, num2 -> sum")

    def forward(self, num, **kwargs):
        num2 = self.tool(x=num)
        return self.predict(num1=num, num2=num2)


class Messages(dspy.streaming.StatusMessageProvider):
    def tool_start_status_message(self, instance, inputs):
        return f"{instance.name} starts with {inputs}"

    def tool_end_status_message(self, outputs):
        return f"the tool returned {outputs}"


stream_sum = dspy.streamify(
    Doubling(),
    stream_listeners=[dspy.streaming.StreamListener(signature_field_name="reasoning")],
    status_message_provider=Messages(),
)
reasoning, statuses, total = asyncio.run(read(stream_sum(num=3)))

blocking = dspy.streamify(
    predict,
    stream_listeners=[dspy.streaming.StreamListener(signature_field_name="answer")],
    async_streaming=False,
)
items = list(blocking(question="Why did the hen cross the yard?"))

results = {
    "chunks": "".join(chunk.chunk for chunk in chunks) == prediction.answer,
    "names": {(chunk.predict_name, chunk.signature_field_name) for chunk in chunks} == {("self", "answer")},
    "both": {chunk.predict_name for chunk in both} == {"predict1", "predict2"},
    "statuses": statuses[0].startswith("double_the_number starts with {") and statuses[1:] == ["the tool returned 6"],
    "reasoning": "".join(chunk.chunk for chunk in reasoning) == total.reasoning,
    "paths": {chunk.predict_name for chunk in reasoning} == {"predict.predict"},
    "blocking": isinstance(items[-1], dspy.Prediction) and isinstance(items[0], dspy.streaming.StreamResponse),
}
