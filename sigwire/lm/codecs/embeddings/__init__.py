"""Embeddings: texts to vectors. One message of a request is one text; ``raw`` of one choice of the response is its vector.

    openai    ``/embeddings`` of OpenAI and compatible hosts      gemini    ``:batchEmbedContents`` of the Gemini API
    ollama    ``/api/embed``                                      shared    profile, vectors, options

Each module is a codec without streams. ``options``: ``dimensions``, the length of the vectors, if the model has a choice.
"""
