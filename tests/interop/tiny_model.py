"""A GGUF file with a tiny llama model of seeded random weights, made by the package ``gguf`` in a fraction of a second.

The model knows nothing. A grammar (structured output, forced calls) constrains its answers to valid JSON, so a server that
holds it answers as one with a real model does. Every embedding has the same first member, so the first column of the output
matrix is a bias for each token: quotes, brackets and the end of the turn are likely enough that answers stay short.
"""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

__all__ = ["LLAMA_CHECKS", "MISTRAL_CHECKS", "TEMPLATE", "THINKS", "write_tiny_model"]

SIZE, HEADS, FORWARD, CONTEXT = 64, 2, 64, 32768

# ChatML with tools and calls in the form of Qwen 2.5, the most common one among open models.
TEMPLATE = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- endif %}
    {{- "\\n\\n# Tools\\n\\nYou may call one or more functions.\\n\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>\\n\\nFor each call, return a JSON object within <tool_call></tool_call> tags:\\n<tool_call>" }}
    {{- '{"name": <function-name>, "arguments": <args-json-object>}</tool_call><|im_end|>\\n' }}
{%- elif messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == "user" or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>assistant\\n' }}
        {%- if message.reasoning_content %}
            {{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}
        {%- endif %}
        {{- message.content or '' }}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '<tool_call>{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

# Put after the template: the model thinks first, in the form of Qwen 3, unless the request switches that off.
THINKS = """\
{%- if add_generation_prompt %}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- else %}
        {{- '<think>\\n' }}
    {%- endif %}
{%- endif %}
"""

# Put before the template: the checks in the templates of Mistral's models and of Llama 3.x.
MISTRAL_CHECKS = """\
{%- for message in messages %}
    {%- for tool_call in message.tool_calls or [] %}
        {%- if tool_call.id is not defined or tool_call.id | length != 9 %}
            {{- raise_exception("Tool call IDs should be alphanumeric strings with length 9!") }}
        {%- endif %}
    {%- endfor %}
    {%- if message.role == "tool" and (message.tool_call_id is not defined or message.tool_call_id | length != 9) %}
        {{- raise_exception("Tool call IDs should be alphanumeric strings with length 9!") }}
    {%- endif %}
    {%- if message.role == "user" and not loop.first and loop.previtem.role == "user" %}
        {{- raise_exception("After the optional system message, conversation roles must alternate user/assistant") }}
    {%- endif %}
{%- endfor %}
"""
LLAMA_CHECKS = """\
{%- for message in messages %}
    {%- if message.tool_calls and message.tool_calls | length != 1 %}
        {{- raise_exception("This model only supports single tool-calls at once!") }}
    {%- endif %}
{%- endfor %}
"""

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
_TEXT = [*string.printable.strip(), "▁"]  # SentencePiece writes a space as "▁"


def _vocabulary() -> tuple[list[str], list[int], list[float]]:
    """Return the tokens, their types, and the bias of each."""
    tokens = ["<unk>", "<s>", "<|im_end|>", "<|im_start|>"]
    kinds = [UNKNOWN, CONTROL, CONTROL, CONTROL]
    biases = [-20.0, -20.0, 3.5, -20.0]
    for tag, bias in (("<tool_call>", 2.5), ("</tool_call>", 2.5), ("<think>", -20.0), ("</think>", 2.5)):
        tokens.append(tag)
        kinds.append(USER_DEFINED)
        biases.append(bias)
    for number in range(256):
        tokens.append(f"<0x{number:02X}>")
        kinds.append(BYTE)
        biases.append(-1.0 if number == ord("\n") else -10.0)
    for text in _TEXT:
        tokens.append(text)
        kinds.append(NORMAL)
        biases.append(_bias(text))
    return tokens, kinds, biases


def _bias(text: str) -> float:
    if text in string.ascii_lowercase:
        return 2.0
    return {'"': 3.5, "}": 3.5, "]": 3.5, ",": -1.0, "\\": -10.0, "▁": -1.0}.get(text, 0.5 if text.isalnum() else -1.0)


def write_tiny_model(path: Path, template: str = TEMPLATE, seed: int = 0) -> None:
    """Write the model's file."""
    import gguf
    import numpy

    numbers = numpy.random.default_rng(seed)

    def weights(*shape: int, scale: float) -> Any:
        return (numbers.standard_normal(shape) * scale).astype(numpy.float32)

    tokens, kinds, biases = _vocabulary()
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(SIZE)
    writer.add_block_count(1)
    writer.add_feed_forward_length(FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(SIZE // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(template)

    embedding = weights(len(tokens), SIZE, scale=0.1)
    embedding[:, 0] = 1.0
    # The norm before the output multiplies a member by 1 / (root of the mean square).
    size = float(numpy.sqrt((1 + (SIZE - 1) * 0.01) / SIZE))
    output = weights(len(tokens), SIZE, scale=0.2)
    output[:, 0] = numpy.array(biases) * size
    ones = numpy.ones(SIZE, dtype=numpy.float32)
    writer.add_tensor("token_embd.weight", embedding)
    writer.add_tensor("output_norm.weight", ones)
    writer.add_tensor("output.weight", output)
    for name in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.0.{name}.weight", ones)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        writer.add_tensor(f"blk.0.{name}.weight", weights(SIZE, SIZE, scale=0.01))
    for name in ("ffn_gate", "ffn_up", "ffn_down"):
        writer.add_tensor(f"blk.0.{name}.weight", weights(FORWARD, SIZE, scale=0.01))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
