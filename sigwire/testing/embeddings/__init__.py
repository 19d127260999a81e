"""The fake provider's endpoints of embeddings: ``wires`` (OpenAI, Gemini, Ollama). They need no script."""
