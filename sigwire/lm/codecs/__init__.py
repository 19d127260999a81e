"""Wire codecs: pure functions between canonical values and a provider's JSON. Nothing here does I/O.

base           what every codec takes and gives, and the steps they share: shapes, options, offers (tools), reasoning,
               media, replies, loose (JSON of others), each a file of its name
repair         history made fit for a wire      schema_rules   JSON Schema as a wire takes it
faults         error replies, classified        dialects       the hosts that speak chat completions, one row each
assembly       streamed replies: told as they come, put together, and decoded like whole ones
openai_chat    chat completions: OpenAI and compatible hosts, in a package
openai_responses  OpenAI's Responses, and the hosts that speak it
anthropic      Anthropic's Messages, and the hosts that speak it, in a package
gemini         Gemini's generateContent, on the Gemini API and on Vertex AI, in a package
ollama         Ollama's own wire, /api/chat, in a package
openai_shape   OpenAI-like message dicts and answer objects, which Python programs pass to each other
"""
