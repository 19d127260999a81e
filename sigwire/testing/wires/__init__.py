"""The wires of the fake provider: one file per wire, one per stream; clouds and compatible hosts serve variants.

anthropic         Messages                          anthropic_stream         its blocks: start, deltas, stop
anthropic_turns   its rules of turns and calls      openai                   keys, names and schemas of OpenAI's wires
openai_chat       chat completions                  openai_chat_stream       its chunks
openai_responses  Responses                         openai_responses_stream  its numbered events
gemini            generateContent                   gemini_stream            its chunks, each a response
ollama            /api/chat                         ollama_stream            its lines of JSON
decisions         decision endpoints: OpenAI's, System One's, the Gemini API's
compatible        hosts of chat completions         clouds                   Azure and Vertex: paths, keys, errors
"""
