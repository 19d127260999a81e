"""The door for DSPy programs: ``import sigwire.dspy as dspy``.

Every public name of ``sigwire`` is here and is loaded on first use (PEP 562). Some names have DSPy's arguments, methods
and attributes in addition, others exist only here. Every class of the door is a subclass of the core's class; nothing is
patched, and nothing in the core imports the door.

    adapters          DSPy's options of the four adapters     saving, loading   files that DSPy saved; ``load``
    agent_history     turns of agents in a ``History``        settings          hints for DSPy's settings, send_stream
    cache             DSPy's methods of the cache             signatures        fields, and the names of dspy.signatures
    cached_functions  request_cache                           streamify         streamify, listeners, messages
    call_history      GLOBAL_HISTORY, inspect_history         streaming         the names of dspy.streaming
    callback          with_callbacks                          teleprompt        the optimizers, as in dspy.teleprompt
    clients           the names of dspy.clients               text_loop         DSPy's loop of an agent in text
    dsp               the names of dspy.dsp                   tools             Tool, ToolCalls
    experimental      the names of dspy.experimental          type_methods      DSPy's methods of field types
    inputs            checks of the inputs of a call          types             fields: Type, Document, Image, History ...
    lm                LM, BaseLM, DummyLM                     datasets          Dataset, DataLoader, GSM8K, MATH
    marks             media in the text of a prompt           evaluate          the names of dspy.evaluate
    missing           names of DSPy that are not here         layouts           parts of the prompts of adapters
    modules           Module, Predict, ChainOfThought, ReAct  models, optimizers  parts of lm, of teleprompt
    paths             DSPy's module paths without a file      predict, primitives, utils  the names of DSPy's packages
    retrievers        Embeddings, Retrieve
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import sigwire

if TYPE_CHECKING:
    from sigwire import (  # isort: skip
        EM, F1, SIMBA, AdapterParseError, AgentStopped, ApprovalAsked, ApprovalNeeded, AskStart,
        BaseCallback, BatchInDoubt, BatchLM, BatchRun, BootstrapFewShot,
        BootstrapFewShotWithOptuna, Budget, BudgetSpent, CallReport,
        CallerError, Capabilities, Cassette, CassetteMiss, ChatSession, Choice, CodeLimits, Comparison,
        CompleteAndGrounded, Completions, ConfigurationError, ContentFiltered, ContextWindowExceededError, DataSplit,
        DemoWarning, Embedder, EmptyResponse, Ensemble, Evaluate, EvaluationAborted, EvaluationInterrupted,
        EvaluationProgress, EvaluationResult, EventLoopError, Example, ExampleDone, Examples, FakeLM, FetchError,
        FetchPolicy, FetchedFile, FieldDelta, FieldEnd, FieldPartial, Finished, Health, HistoryLoss, HotPotF1,
        InferRules, InputError, Job, JobRefused, Journal, JournalDivergence, JudgeError,
        LMAuthenticationError, LMBillingError, LMError, LMInvalidRequestError, LMNotConfigured, LMRateLimitError,
        LMServerError, LMTimeoutError, LMTransportError, LMUnexpectedError, LMUnsupportedModelError, LMWarning,
        LanguageModel, Limit, LimitState, Loss, MIPROv2, MalformedToolCall, MapResult, McpServerError, Message,
        MetricError, ModelCall, ModelError, MontyInterpreter, OptimizationInterrupted,
        OptimizationReport, Optimizer, OutputTruncated, PendingCall, PortableHistory, Prediction, Preview,
        Price, ProgramDifference, ProgramEvent, ReActStep, Reasoned, ReasoningDelta, Refused, Repair, Request,
        Response, ResponseFormat, RetryPolicy, RetryTool, Router, RunIsLive, Score, SearchPaused, SemanticF1,
        Signature, SignatureError, SigwireError, StateError, StreamCancelled, SubprocessInterpreter, TextDelta,
        Timeout, ToolCall, ToolCallDelta, ToolCallEnd, ToolCallStart, ToolChoice, ToolDefinitionError, ToolDone,
        ToolFailed, ToolInterrupted, ToolResult, ToolText, ToolWarning, Toolbox, UnsupportedFeature, UnsupportedMedia,
        Usage, UsageUpdate, WebSearch, Where, __version__, agreement, amap_rows, answer_exact_match,
        answer_passage_match, bfcl_match, check, compare, contains, current_call, deadline, em_score,
        ensure_signature, f1_score, fetch, history, hotpot_f1_score, is_retryable_lm_error,
        json_match, limits, load_bfcl, load_examples, load_program, load_records, log_to_stderr, majority,
        majority_judge, make_signature, map_rows, matches_schema, mcp_tools, normalize_text, outputs_of,
        pairwise_judge, precision_score, preview_all, prices, save_program, split_examples, to_provider,
        tool_call_match, within,
    )  # fmt: skip
    from sigwire.dspy import (  # isort: skip
        adapters, clients, datasets, evaluate, experimental, predict, primitives, retrievers, signatures, streaming,
        teleprompt, utils,
    )  # fmt: skip
    from sigwire.dspy.adapters import Adapter, BAMLAdapter, ChatAdapter, JSONAdapter, TwoStepAdapter, XMLAdapter
    from sigwire.dspy.cache import cache, configure_cache
    from sigwire.dspy.call_history import inspect_history
    from sigwire.dspy.lm import LM, BaseLM, DummyLM
    from sigwire.dspy.modules import AgentRun, ChainOfThought, Module, Predict, ReAct, ReActV2
    from sigwire.dspy.predict.code import RLM, CodeAct, ProgramOfThought
    from sigwire.dspy.predict.composites import BestOfN, MultiChainComparison, Parallel, Refine
    from sigwire.dspy.predict.nearest import KNN
    from sigwire.dspy.primitives import BaseModule
    from sigwire.dspy.primitives.interpreters import (  # isort: skip
        CodeExecutionError, CodeInterpreter, CodeInterpreterError, FinalOutput, LocalInterpreter, PythonInterpreter,
    )  # fmt: skip
    from sigwire.dspy.primitives.sandbox_serializable import SandboxSerializable
    from sigwire.dspy.retrievers import Embeddings, EmbeddingsWithScores, Retrieve
    from sigwire.dspy.settings import configure, context, load_settings, settings, track_usage
    from sigwire.dspy.signatures import InputField, OutputField, SignatureMeta, infer_prefix
    from sigwire.dspy.streamify import (  # isort: skip
        SendStream, StatusMessage, StatusMessageProvider, StreamListener, StreamResponse, apply_sync_streaming,
        streamify, streaming_response, sync_send_to_stream,
    )  # fmt: skip
    from sigwire.dspy.teleprompt import (  # isort: skip
        COPRO, GEPA, BetterTogether, BootstrapFewShotWithRandomSearch, BootstrapRS, KNNFewShot, LabeledFewShot,
        Teleprompter, bootstrap_trace_data,
    )  # fmt: skip
    from sigwire.dspy.callback import with_callbacks
    from sigwire.dspy.tools import Tool, ToolCallResults, ToolCalls
    from sigwire.dspy.types import Audio, Citations, Code, Document, File, History, Image, Reasoning, Type
    from sigwire.dspy.utils.both_forms import asyncify, syncify
    from sigwire.dspy.utils.exceptions import (  # isort: skip
        DSPyError, LMAuthError, LMConfigurationError, LMNotConfiguredError, LMProviderError, LMStreamAssemblyError,
        LMUnsupportedFeatureError,
    )  # fmt: skip
    from sigwire.dspy.utils.logging_utils import (  # isort: skip
        disable_litellm_logging, disable_logging, enable_litellm_logging, enable_logging,
    )  # fmt: skip
    from sigwire.dspy.loading import load

__all__ = [
    "COPRO", "EM", "F1", "GEPA", "KNN", "LM", "RLM", "SIMBA", "Adapter", "AdapterParseError", "AgentRun",
    "AgentStopped", "ApprovalAsked", "ApprovalNeeded", "AskStart", "Audio", "BAMLAdapter", "BaseCallback", "BaseLM",
    "BaseModule", "BatchInDoubt", "BatchLM", "BatchRun", "BestOfN", "BetterTogether", "BootstrapFewShot",
    "BootstrapFewShotWithOptuna", "BootstrapFewShotWithRandomSearch", "BootstrapRS", "Budget", "BudgetSpent",
    "CallReport", "CallerError", "Capabilities", "Cassette", "CassetteMiss", "ChainOfThought", "ChatAdapter",
    "ChatSession", "Choice", "Citations", "Code", "CodeAct", "CodeExecutionError", "CodeInterpreter",
    "CodeInterpreterError", "CodeLimits", "Comparison", "CompleteAndGrounded", "Completions", "ConfigurationError",
    "ContentFiltered", "ContextWindowExceededError", "DSPyError", "DataSplit", "DemoWarning", "Document", "DummyLM",
    "Embedder", "Embeddings", "EmbeddingsWithScores", "EmptyResponse", "Ensemble", "Evaluate", "EvaluationAborted",
    "EvaluationInterrupted", "EvaluationProgress", "EvaluationResult", "EventLoopError", "Example", "ExampleDone",
    "Examples", "FakeLM", "FetchError", "FetchPolicy", "FetchedFile", "FieldDelta", "FieldEnd", "FieldPartial", "File",
    "FinalOutput", "Finished", "Health", "History", "HistoryLoss", "HotPotF1", "Image", "InferRules", "InputError",
    "InputField", "JSONAdapter", "Job", "JobRefused", "Journal", "JournalDivergence", "JudgeError", "KNNFewShot",
    "LMAuthError", "LMAuthenticationError", "LMBillingError", "LMConfigurationError", "LMError",
    "LMInvalidRequestError", "LMNotConfigured", "LMNotConfiguredError", "LMProviderError", "LMRateLimitError",
    "LMServerError", "LMStreamAssemblyError", "LMTimeoutError", "LMTransportError", "LMUnexpectedError",
    "LMUnsupportedFeatureError", "LMUnsupportedModelError", "LMWarning", "LabeledFewShot", "LanguageModel", "Limit",
    "LimitState", "LocalInterpreter", "Loss", "MIPROv2", "MalformedToolCall", "MapResult", "McpServerError", "Message",
    "MetricError", "ModelCall", "ModelError", "Module", "MontyInterpreter", "MultiChainComparison",
    "OptimizationInterrupted", "OptimizationReport", "Optimizer", "OutputField", "OutputTruncated", "Parallel",
    "PendingCall", "PortableHistory", "Predict", "Prediction", "Preview", "Price", "ProgramDifference", "ProgramEvent",
    "ProgramOfThought", "PythonInterpreter", "ReAct", "ReActStep", "ReActV2", "Reasoned", "Reasoning",
    "ReasoningDelta", "Refine", "Refused", "Repair", "Request", "Response", "ResponseFormat", "Retrieve",
    "RetryPolicy", "RetryTool", "Router", "RunIsLive", "SandboxSerializable", "Score", "SearchPaused", "SemanticF1",
    "SendStream", "Signature", "SignatureError", "SignatureMeta", "SigwireError", "StateError", "StatusMessage",
    "StatusMessageProvider", "StreamCancelled", "StreamListener", "StreamResponse", "SubprocessInterpreter",
    "Teleprompter", "TextDelta", "Timeout", "Tool", "ToolCall", "ToolCallDelta", "ToolCallEnd", "ToolCallResults",
    "ToolCallStart", "ToolCalls", "ToolChoice", "ToolDefinitionError", "ToolDone", "ToolFailed", "ToolInterrupted",
    "ToolResult", "ToolText", "ToolWarning", "Toolbox", "TwoStepAdapter", "Type", "UnsupportedFeature",
    "UnsupportedMedia", "Usage", "UsageUpdate", "WebSearch", "Where", "XMLAdapter", "__version__", "adapters",
    "agreement", "amap_rows", "answer_exact_match", "answer_passage_match", "apply_sync_streaming", "asyncify",
    "bfcl_match", "bootstrap_trace_data", "cache", "check", "clients", "compare", "configure", "configure_cache",
    "contains", "context", "current_call", "datasets", "deadline", "disable_litellm_logging", "disable_logging",
    "em_score", "enable_litellm_logging", "enable_logging", "ensure_signature", "evaluate", "experimental", "f1_score",
    "fetch", "history", "hotpot_f1_score", "infer_prefix", "inspect_history", "is_retryable_lm_error", "json_match",
    "limits", "load", "load_bfcl", "load_examples", "load_program", "load_records", "load_settings", "log_to_stderr",
    "majority", "majority_judge", "make_signature", "map_rows", "matches_schema", "mcp_tools", "normalize_text",
    "outputs_of", "pairwise_judge", "precision_score", "predict", "preview_all", "prices", "primitives", "retrievers",
    "save_program", "settings", "signatures", "split_examples", "streamify", "streaming", "streaming_response",
    "sync_send_to_stream", "syncify", "teleprompt", "to_provider", "tool_call_match", "track_usage", "utils",
    "with_callbacks", "within",
]  # fmt: skip

# The module of each name that is not the core's own (tests/dspy/test_door.py compares them with the imports above).
_MODULES = {
    "sigwire.dspy.adapters": "Adapter BAMLAdapter ChatAdapter JSONAdapter TwoStepAdapter XMLAdapter",
    "sigwire.dspy.cache": "cache configure_cache",
    "sigwire.dspy.call_history": "inspect_history",
    "sigwire.dspy.lm": "BaseLM DummyLM LM",
    "sigwire.dspy.modules": "AgentRun ChainOfThought Module Predict ReAct ReActV2",
    "sigwire.dspy.predict.code": "CodeAct ProgramOfThought RLM",
    "sigwire.dspy.predict.composites": "BestOfN MultiChainComparison Parallel Refine",
    "sigwire.dspy.predict.nearest": "KNN",
    "sigwire.dspy.primitives": "BaseModule",
    "sigwire.dspy.primitives.interpreters": (
        "CodeExecutionError CodeInterpreter CodeInterpreterError FinalOutput LocalInterpreter PythonInterpreter"
    ),
    "sigwire.dspy.primitives.sandbox_serializable": "SandboxSerializable",
    "sigwire.dspy.retrievers": "Embeddings EmbeddingsWithScores Retrieve",
    "sigwire.dspy.settings": "configure context load_settings settings track_usage",
    "sigwire.dspy.signatures": "InputField OutputField SignatureMeta infer_prefix",
    "sigwire.dspy.streamify": (
        "SendStream StatusMessage StatusMessageProvider StreamListener StreamResponse apply_sync_streaming streamify "
        "streaming_response sync_send_to_stream"
    ),
    "sigwire.dspy.teleprompt": (
        "BetterTogether BootstrapFewShotWithRandomSearch BootstrapRS COPRO GEPA KNNFewShot LabeledFewShot Teleprompter "
        "bootstrap_trace_data"
    ),
    "sigwire.dspy.tools": "Tool ToolCallResults ToolCalls",
    "sigwire.dspy.types": "Audio Citations Code Document File History Image Reasoning Type",
    "sigwire.dspy.utils.both_forms": "asyncify syncify",
    "sigwire.dspy.callback": "with_callbacks",
    "sigwire.dspy.utils.exceptions": (
        "DSPyError LMAuthError LMConfigurationError LMNotConfiguredError LMProviderError LMStreamAssemblyError "
        "LMUnsupportedFeatureError"
    ),
    "sigwire.dspy.utils.logging_utils": "disable_litellm_logging disable_logging enable_litellm_logging enable_logging",
    "sigwire.dspy.loading": "load",
}
_FOLDERS = frozenset(
    "adapters clients datasets evaluate experimental predict primitives retrievers signatures streaming teleprompt "
    "utils".split()
)
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _FOLDERS:
        return import_module(f"{__name__}.{name}")
    if name in ("AvatarOptimizer", "BootstrapFinetune", "GRPO"):  # not public: their ``compile`` raises
        return getattr(import_module(f"{__name__}.teleprompt"), name)
    if name not in __all__:
        instead = import_module(f"{__name__}.missing").advice(name)
        raise AttributeError(f"sigwire.dspy has no public name {name!r}. {instead}")
    value = getattr(import_module(_MODULE_OF[name]) if name in _MODULE_OF else sigwire, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _Door(ModuleType):
    """The import system binds a submodule as an attribute of its package; ``cache``, ``settings`` and ``streamify`` are
    the objects of that name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("cache", "settings", "streamify") and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Door
