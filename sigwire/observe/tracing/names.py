"""The names of spans' attributes, metrics and events: one constant a row. No other file of the package writes them.

The conventions for generative AI are in development, in the repository open-telemetry/semantic-conventions-genai, which has no
release. Attributes are those of the registry as opentelemetry-python-genai has it at its commit 30c6e667 (September 2026):
``cache_write``, not ``cache_creation``; ``gen_ai.provider.name``, never ``gen_ai.system``. Metrics keep the names that the
Python helper records (``gen_ai.client.operation.duration``), with its buckets; the newest conventions have others.
A test compares each name with the lists in ``tests/observe/data``. Names that begin with ``sigwire`` are sigwire's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["PROVIDER_NAMES"]

# --- operations: values of ``gen_ai.operation.name``, and the first word of the names of spans
CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"
INVOKE_AGENT: Final = "invoke_agent"
INVOKE_WORKFLOW: Final = "invoke_workflow"

# --- every span
OPERATION: Final = "gen_ai.operation.name"
ERROR_TYPE: Final = "error.type"

# --- a call of a model
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
REQUEST_TOP_P: Final = "gen_ai.request.top_p"
REQUEST_TOP_K: Final = "gen_ai.request.top_k"
REQUEST_SEED: Final = "gen_ai.request.seed"
REQUEST_STOP: Final = "gen_ai.request.stop_sequences"
REQUEST_FREQUENCY_PENALTY: Final = "gen_ai.request.frequency_penalty"
REQUEST_PRESENCE_PENALTY: Final = "gen_ai.request.presence_penalty"
REQUEST_CHOICES: Final = "gen_ai.request.choice.count"
REQUEST_STREAM: Final = "gen_ai.request.stream"
REQUEST_REASONING: Final = "gen_ai.request.reasoning.level"
OUTPUT_TYPE: Final = "gen_ai.output.type"
RESPONSE_ID: Final = "gen_ai.response.id"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
RESPONSE_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS: Final = "gen_ai.usage.cache_write.input_tokens"
REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
TOKEN_TYPE: Final = "gen_ai.token.type"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"

# --- agents, workflows, tools
AGENT_NAME: Final = "gen_ai.agent.name"
WORKFLOW_NAME: Final = "gen_ai.workflow.name"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_DESCRIPTION: Final = "gen_ai.tool.description"

# --- content: recorded only on demand
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
TOOL_DEFINITIONS: Final = "gen_ai.tool.definitions"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
EXCEPTION_MESSAGE: Final = "exception.message"
EXCEPTION_TYPE: Final = "exception.type"
EXCEPTION_STACKTRACE: Final = "exception.stacktrace"

# --- evaluation
EVALUATION_RESULT: Final = "gen_ai.evaluation.result"
EVALUATION_NAME: Final = "gen_ai.evaluation.name"
EVALUATION_SCORE: Final = "gen_ai.evaluation.score.value"
EVALUATION_EXPLANATION: Final = "gen_ai.evaluation.explanation"

# --- metrics
OPERATION_DURATION: Final = "gen_ai.client.operation.duration"
TOKEN_USAGE: Final = "gen_ai.client.token.usage"
EXECUTE_TOOL_DURATION: Final = "gen_ai.execute_tool.duration"
INVOKE_AGENT_DURATION: Final = "gen_ai.invoke_agent.duration"

# --- sigwire's
ADAPTER: Final = "sigwire.adapter"
ATTEMPTS: Final = "sigwire.attempts"
CACHE: Final = "sigwire.cache"
CANCELLED: Final = "sigwire.cancelled"
EXAMPLE_ID: Final = "sigwire.example.id"
EXAMPLE_INDEX: Final = "sigwire.example.index"
EXAMPLE_REPEAT: Final = "sigwire.example.repeat"
EXAMPLES: Final = "sigwire.examples"
FAILURE: Final = "sigwire.failure"
INPUTS: Final = "sigwire.inputs"
MODE: Final = "sigwire.mode"
OUTPUTS: Final = "sigwire.outputs"
PATH: Final = "sigwire.path"
PROGRAM: Final = "sigwire.program"
REPAIRS: Final = "sigwire.repairs"
SCORE: Final = "sigwire.score"
SIGNATURE: Final = "sigwire.signature"
STATUS: Final = "sigwire.status"
TERMINATION: Final = "sigwire.termination"
TURN: Final = "sigwire.turn"
TURNS: Final = "sigwire.turns"

PROVIDER_NAMES: Mapping[str, str] = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "vertex": "gcp.vertex_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""``gen_ai.provider.name`` by the prefix of a model string. A prefix that is missing here is its own name."""
