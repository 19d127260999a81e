"""sigwire: typed signatures for language models. This file holds the public names.

Every public name is loaded on first use (PEP 562), so ``import sigwire`` loads no other module. Type checkers read the same
names from the imports below. No module of the package but ``sigwire.dspy`` imports this file.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from sigwire.adapters.base import Adapter
    from sigwire.adapters.chat import ChatAdapter
    from sigwire.adapters.json import JSONAdapter
    from sigwire.adapters.two_step import TwoStepAdapter
    from sigwire.adapters.xml import XMLAdapter
    from sigwire.cassettes.cassette import Cassette
    from sigwire.cassettes.errors import CassetteMiss
    from sigwire.core.capabilities import Capabilities
    from sigwire.core.cards.examples import Examples
    from sigwire.core.events import (  # isort: skip
        ApprovalAsked, AskStart, FieldDelta, FieldEnd, FieldPartial, Finished, ProgramEvent, ReasoningDelta, TextDelta,
        ToolCallDelta, ToolCallEnd, ToolCallStart, ToolDone, UsageUpdate,
    )  # fmt: skip
    from sigwire.core.example import CallReport, Completions, Example, Prediction, outputs_of
    from sigwire.core.messages import Message
    from sigwire.core.request import Request, ResponseFormat, ToolChoice
    from sigwire.core.response import Choice, LMWarning, Repair, Response, Usage
    from sigwire.core.tools.calls import ToolCall, ToolCalls, ToolResult, WebSearch
    from sigwire.core.tools.texts import ToolText
    from sigwire.core.tools.tool import Tool
    from sigwire.effects.cancellation import StreamCancelled
    from sigwire.evaluate.comparison import Comparison, ProgramDifference, compare
    from sigwire.evaluate.evaluation import Evaluate, load_records
    from sigwire.evaluate.progress import EvaluationProgress
    from sigwire.evaluate.result import EvaluationResult
    from sigwire.evaluate.rows.map_rows import MapResult, amap_rows, map_rows
    from sigwire.evaluate.running.run import EvaluationAborted, EvaluationInterrupted, ExampleDone
    from sigwire.evaluate.scores import MetricError, Score
    from sigwire.errors import (  # isort: skip
        AdapterParseError, AgentStopped, BudgetSpent, CallerError, ConfigurationError, ContentFiltered,
        ContextWindowExceededError, DemoWarning, EmptyResponse, EventLoopError, InputError, LMAuthenticationError,
        LMBillingError, LMError, LMInvalidRequestError, LMNotConfigured, LMRateLimitError, LMServerError,
        LMTimeoutError, LMTransportError, LMUnexpectedError, LMUnsupportedModelError, MalformedToolCall, ModelError,
        OutputTruncated, Refused, RetryTool, SignatureError, SigwireError, StateError, ToolDefinitionError,
        ToolFailed, ToolWarning, UnsupportedFeature, Where, is_retryable_lm_error,
    )  # fmt: skip
    from sigwire.evaluate.metrics import (  # isort: skip
        EM, F1, CompleteAndGrounded, HotPotF1, JudgeError, SemanticF1, agreement, answer_exact_match,
        answer_passage_match, bfcl_match, contains, em_score, f1_score, hotpot_f1_score, json_match, load_bfcl,
        majority_judge, matches_schema, normalize_text, pairwise_judge, precision_score, tool_call_match, within,
    )  # fmt: skip
    from sigwire.data.reading import load_examples
    from sigwire.data.splitting import DataSplit, split_examples
    from sigwire.interpreters import CodeLimits, MontyInterpreter, SubprocessInterpreter
    from sigwire.jobs import Job, JobRefused
    from sigwire.journal.errors import ApprovalNeeded, JournalDivergence, PendingCall, RunIsLive, ToolInterrupted
    from sigwire.journal.journal import Journal
    from sigwire.lm.base import BaseLM, LanguageModel
    from sigwire.lm.batch.driver import BatchInDoubt
    from sigwire.lm.batch.model import BatchLM
    from sigwire.lm.client import LM
    from sigwire.lm.fake import FakeLM
    from sigwire.lm.histories.losses import HistoryLoss, Loss
    from sigwire.lm.policy.cache.cache import cache, configure_cache
    from sigwire.lm.policy.deadlines import Timeout, deadline
    from sigwire.lm.policy.failover.health import Health
    from sigwire.lm.policy.limits.limit import Limit, LimitState
    from sigwire.lm.policy.limits.registry import limits
    from sigwire.lm.policy.money.budget import Budget
    from sigwire.lm.policy.money.prices import Price, prices
    from sigwire.lm.policy.retry import RetryPolicy
    from sigwire.lm.portable import PortableHistory, to_provider
    from sigwire.lm.preview.model_call import ModelCall
    from sigwire.lm.preview.preview import Preview
    from sigwire.lm.router.router import Router
    from sigwire.mcp.errors import McpServerError
    from sigwire.mcp.servers import mcp_tools
    from sigwire.media.errors import FetchError, UnsupportedMedia
    from sigwire.media.fetching import fetch
    from sigwire.media.policy import FetchedFile, FetchPolicy
    from sigwire.modules.agents.react import ReAct
    from sigwire.modules.agents.run import AgentRun, ReActStep
    from sigwire.modules.agents.running_call import current_call
    from sigwire.modules.agents.session import ChatSession
    from sigwire.modules.agents.toolbox import Toolbox
    from sigwire.modules.batch import BatchRun
    from sigwire.modules.chain_of_thought import ChainOfThought, Reasoned
    from sigwire.modules.code import RLM, CodeAct, ProgramOfThought
    from sigwire.modules.module import Module
    from sigwire.modules.parallel import Parallel
    from sigwire.modules.predict import Predict
    from sigwire.modules.preview.history import history, inspect_history
    from sigwire.modules.preview.whole_program import check, preview_all
    from sigwire.modules.programs.files import load_program, save_program
    from sigwire.modules.sampling.best_of_n import BestOfN
    from sigwire.modules.sampling.multi_chain import MultiChainComparison
    from sigwire.modules.sampling.refine import Refine
    from sigwire.observe.callbacks import BaseCallback
    from sigwire.observe.tracing.logs import log_to_stderr
    from sigwire.observe.usage import track_usage
    from sigwire.optimizers.errors import OptimizationInterrupted, SearchPaused
    from sigwire.optimizers.optimizer import Optimizer
    from sigwire.optimizers.reports.report import OptimizationReport
    from sigwire.optimizers.rules.better_together import BetterTogether
    from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
    from sigwire.optimizers.rules.copro import COPRO
    from sigwire.optimizers.rules.ensemble import Ensemble, majority
    from sigwire.optimizers.rules.gepa import GEPA
    from sigwire.optimizers.rules.infer_rules import InferRules
    from sigwire.optimizers.rules.knn import KNNFewShot
    from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot
    from sigwire.optimizers.rules.miprov2 import MIPROv2
    from sigwire.optimizers.rules.optuna_search import BootstrapFewShotWithOptuna
    from sigwire.optimizers.rules.random_search import BootstrapFewShotWithRandomSearch, BootstrapRS
    from sigwire.optimizers.rules.simba import SIMBA
    from sigwire.retrieval.embedder import Embedder
    from sigwire.retrieval.embeddings import Embeddings, EmbeddingsWithScores
    from sigwire.retrieval.knn import KNN
    from sigwire.settings import configure, context, settings
    from sigwire.signatures.declarations import InputField, OutputField
    from sigwire.signatures.signature import Signature, ensure_signature, make_signature
    from sigwire.signatures.types.history import History
    from sigwire.signatures.types.media import Audio, File, Image
    from sigwire.signatures.types.text import Code, Reasoning

__all__ = [
    "COPRO", "EM", "F1", "GEPA", "KNN", "LM", "RLM", "SIMBA", "Adapter", "AdapterParseError", "AgentRun",
    "AgentStopped", "ApprovalAsked", "ApprovalNeeded", "AskStart", "Audio", "BaseCallback", "BaseLM", "BatchInDoubt",
    "BatchLM", "BatchRun", "BestOfN", "BetterTogether", "BootstrapFewShot", "BootstrapFewShotWithOptuna",
    "BootstrapFewShotWithRandomSearch", "BootstrapRS", "Budget", "BudgetSpent", "CallReport", "CallerError",
    "Capabilities", "Cassette", "CassetteMiss", "ChainOfThought", "ChatAdapter", "ChatSession", "Choice", "Code",
    "CodeAct", "CodeLimits", "Comparison", "CompleteAndGrounded", "Completions", "ConfigurationError",
    "ContentFiltered", "ContextWindowExceededError", "DataSplit", "DemoWarning", "Embedder", "Embeddings",
    "EmbeddingsWithScores", "EmptyResponse", "Ensemble", "Evaluate", "EvaluationAborted", "EvaluationInterrupted",
    "EvaluationProgress", "EvaluationResult", "EventLoopError", "Example", "ExampleDone", "Examples", "FakeLM",
    "FetchError", "FetchPolicy", "FetchedFile", "FieldDelta", "FieldEnd", "FieldPartial", "File", "Finished", "Health",
    "History", "HistoryLoss", "HotPotF1", "Image", "InferRules", "InputError", "InputField", "JSONAdapter", "Job",
    "JobRefused", "Journal", "JournalDivergence", "JudgeError", "KNNFewShot", "LMAuthenticationError",
    "LMBillingError", "LMError", "LMInvalidRequestError", "LMNotConfigured", "LMRateLimitError", "LMServerError",
    "LMTimeoutError", "LMTransportError", "LMUnexpectedError", "LMUnsupportedModelError", "LMWarning",
    "LabeledFewShot", "LanguageModel", "Limit", "LimitState", "Loss", "MIPROv2", "MalformedToolCall", "MapResult",
    "McpServerError", "Message", "MetricError", "ModelCall", "ModelError", "Module", "MontyInterpreter",
    "MultiChainComparison", "OptimizationInterrupted", "OptimizationReport", "Optimizer", "OutputField",
    "OutputTruncated", "Parallel", "PendingCall", "PortableHistory", "Predict", "Prediction", "Preview", "Price",
    "ProgramDifference", "ProgramEvent", "ProgramOfThought", "ReAct", "ReActStep", "Reasoned", "Reasoning",
    "ReasoningDelta", "Refine", "Refused", "Repair", "Request", "Response", "ResponseFormat", "RetryPolicy",
    "RetryTool", "Router", "RunIsLive", "Score", "SearchPaused", "SemanticF1", "Signature", "SignatureError",
    "SigwireError", "StateError", "StreamCancelled", "SubprocessInterpreter", "TextDelta", "Timeout", "Tool",
    "ToolCall", "ToolCallDelta", "ToolCallEnd", "ToolCallStart", "ToolCalls", "ToolChoice", "ToolDefinitionError",
    "ToolDone", "ToolFailed", "ToolInterrupted", "ToolResult", "ToolText", "ToolWarning", "Toolbox", "TwoStepAdapter",
    "UnsupportedFeature", "UnsupportedMedia", "Usage", "UsageUpdate", "WebSearch", "Where", "XMLAdapter",
    "__version__", "agreement", "amap_rows", "answer_exact_match", "answer_passage_match", "bfcl_match", "cache",
    "check", "compare", "configure", "configure_cache", "contains", "context", "current_call", "deadline", "em_score",
    "ensure_signature", "f1_score", "fetch", "history", "hotpot_f1_score", "inspect_history", "is_retryable_lm_error",
    "json_match", "limits", "load_bfcl", "load_examples", "load_program", "load_records", "log_to_stderr", "majority",
    "majority_judge", "make_signature", "map_rows", "matches_schema", "mcp_tools", "normalize_text", "outputs_of",
    "pairwise_judge", "precision_score", "preview_all", "prices", "save_program", "settings", "split_examples",
    "to_provider", "tool_call_match", "track_usage", "within",
]  # fmt: skip

# Where each name lives: the same as the imports above, which only type checkers read (tests/test_house.py compares them).
_NAMES_BY_MODULE = {
    "sigwire.adapters.base": "Adapter",
    "sigwire.adapters.chat": "ChatAdapter",
    "sigwire.adapters.json": "JSONAdapter",
    "sigwire.adapters.two_step": "TwoStepAdapter",
    "sigwire.adapters.xml": "XMLAdapter",
    "sigwire.cassettes.cassette": "Cassette",
    "sigwire.cassettes.errors": "CassetteMiss",
    "sigwire.core.capabilities": "Capabilities",
    "sigwire.core.cards.examples": "Examples",
    "sigwire.core.events": (
        "ApprovalAsked AskStart FieldDelta FieldEnd FieldPartial Finished ProgramEvent ReasoningDelta TextDelta "
        "ToolCallDelta ToolCallEnd ToolCallStart ToolDone UsageUpdate"
    ),
    "sigwire.core.example": "CallReport Completions Example Prediction outputs_of",
    "sigwire.core.messages": "Message",
    "sigwire.core.request": "Request ResponseFormat ToolChoice",
    "sigwire.core.response": "Choice LMWarning Repair Response Usage",
    "sigwire.core.tools.calls": "ToolCall ToolCalls ToolResult WebSearch",
    "sigwire.core.tools.texts": "ToolText",
    "sigwire.core.tools.tool": "Tool",
    "sigwire.effects.cancellation": "StreamCancelled",
    "sigwire.errors": (
        "AdapterParseError AgentStopped BudgetSpent CallerError ConfigurationError ContentFiltered ContextWindowExceededError "
        "DemoWarning EmptyResponse EventLoopError InputError LMAuthenticationError LMBillingError LMError "
        "LMInvalidRequestError LMNotConfigured LMRateLimitError LMServerError LMTimeoutError LMTransportError "
        "LMUnexpectedError LMUnsupportedModelError MalformedToolCall ModelError OutputTruncated Refused RetryTool "
        "SignatureError SigwireError StateError ToolDefinitionError ToolFailed ToolWarning UnsupportedFeature Where "
        "is_retryable_lm_error"
    ),
    "sigwire.evaluate.metrics": (
        "EM F1 CompleteAndGrounded HotPotF1 JudgeError SemanticF1 agreement answer_exact_match answer_passage_match "
        "bfcl_match contains em_score f1_score hotpot_f1_score json_match load_bfcl majority_judge matches_schema "
        "normalize_text pairwise_judge precision_score tool_call_match within"
    ),
    "sigwire.evaluate.evaluation": "Evaluate load_records",
    "sigwire.evaluate.comparison": "Comparison ProgramDifference compare",
    "sigwire.evaluate.rows.map_rows": "MapResult amap_rows map_rows",
    "sigwire.evaluate.progress": "EvaluationProgress",
    "sigwire.evaluate.result": "EvaluationResult",
    "sigwire.evaluate.running.run": "EvaluationAborted EvaluationInterrupted ExampleDone",
    "sigwire.evaluate.scores": "MetricError Score",
    "sigwire.jobs": "Job JobRefused",
    "sigwire.journal.errors": "ApprovalNeeded JournalDivergence PendingCall RunIsLive ToolInterrupted",
    "sigwire.journal.journal": "Journal",
    "sigwire.lm.base": "BaseLM LanguageModel",
    "sigwire.lm.batch.driver": "BatchInDoubt",
    "sigwire.lm.batch.model": "BatchLM",
    "sigwire.lm.client": "LM",
    "sigwire.lm.fake": "FakeLM",
    "sigwire.lm.histories.losses": "HistoryLoss Loss",
    "sigwire.lm.policy.cache.cache": "cache configure_cache",
    "sigwire.lm.policy.deadlines": "Timeout deadline",
    "sigwire.lm.policy.failover.health": "Health",
    "sigwire.lm.policy.limits.limit": "Limit LimitState",
    "sigwire.lm.policy.limits.registry": "limits",
    "sigwire.lm.policy.money.budget": "Budget",
    "sigwire.lm.policy.money.prices": "Price prices",
    "sigwire.lm.policy.retry": "RetryPolicy",
    "sigwire.lm.portable": "PortableHistory to_provider",
    "sigwire.lm.preview.model_call": "ModelCall",
    "sigwire.lm.preview.preview": "Preview",
    "sigwire.lm.router.router": "Router",
    "sigwire.mcp.errors": "McpServerError",
    "sigwire.mcp.servers": "mcp_tools",
    "sigwire.media.errors": "FetchError UnsupportedMedia",
    "sigwire.media.fetching": "fetch",
    "sigwire.media.policy": "FetchPolicy FetchedFile",
    "sigwire.modules.chain_of_thought": "ChainOfThought Reasoned",
    "sigwire.interpreters": "CodeLimits MontyInterpreter SubprocessInterpreter",
    "sigwire.modules.batch": "BatchRun",
    "sigwire.modules.code": "CodeAct ProgramOfThought RLM",
    "sigwire.modules.module": "Module",
    "sigwire.modules.predict": "Predict",
    "sigwire.modules.programs.files": "load_program save_program",
    "sigwire.modules.preview.history": "history inspect_history",
    "sigwire.modules.preview.whole_program": "check preview_all",
    "sigwire.modules.agents.react": "ReAct",
    "sigwire.modules.agents.run": "AgentRun ReActStep",
    "sigwire.modules.agents.running_call": "current_call",
    "sigwire.modules.agents.toolbox": "Toolbox",
    "sigwire.observe.callbacks": "BaseCallback",
    "sigwire.observe.tracing.logs": "log_to_stderr",
    "sigwire.observe.usage": "track_usage",
    "sigwire.optimizers.errors": "OptimizationInterrupted SearchPaused",
    "sigwire.optimizers.optimizer": "Optimizer",
    "sigwire.optimizers.reports.report": "OptimizationReport",
    "sigwire.optimizers.rules.better_together": "BetterTogether",
    "sigwire.optimizers.rules.bootstrap_few_shot": "BootstrapFewShot",
    "sigwire.optimizers.rules.copro": "COPRO",
    "sigwire.optimizers.rules.ensemble": "Ensemble majority",
    "sigwire.optimizers.rules.gepa": "GEPA",
    "sigwire.optimizers.rules.infer_rules": "InferRules",
    "sigwire.optimizers.rules.knn": "KNNFewShot",
    "sigwire.optimizers.rules.labeled_few_shot": "LabeledFewShot",
    "sigwire.optimizers.rules.miprov2": "MIPROv2",
    "sigwire.optimizers.rules.optuna_search": "BootstrapFewShotWithOptuna",
    "sigwire.optimizers.rules.random_search": "BootstrapFewShotWithRandomSearch BootstrapRS",
    "sigwire.optimizers.rules.simba": "SIMBA",
    "sigwire.data.reading": "load_examples",
    "sigwire.data.splitting": "DataSplit split_examples",
    "sigwire.modules.agents.session": "ChatSession",
    "sigwire.modules.parallel": "Parallel",
    "sigwire.modules.sampling.best_of_n": "BestOfN",
    "sigwire.modules.sampling.multi_chain": "MultiChainComparison",
    "sigwire.modules.sampling.refine": "Refine",
    "sigwire.retrieval.embedder": "Embedder",
    "sigwire.retrieval.embeddings": "Embeddings EmbeddingsWithScores",
    "sigwire.retrieval.knn": "KNN",
    "sigwire.settings": "configure context settings",
    "sigwire.signatures.declarations": "InputField OutputField",
    "sigwire.signatures.signature": "Signature ensure_signature make_signature",
    "sigwire.signatures.types.history": "History",
    "sigwire.signatures.types.media": "Audio File Image",
    "sigwire.signatures.types.text": "Code Reasoning",
}
_MODULE_OF = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names.split()}
_DSPY_ONLY = frozenset(
    "BAMLAdapter BaseModule Citations CodeExecutionError CodeInterpreter CodeInterpreterError DSPyError Document DummyLM "
    "FinalOutput LMAuthError LMConfigurationError LMNotConfiguredError LMProviderError LMStreamAssemblyError "
    "LMUnsupportedFeatureError LocalInterpreter PythonInterpreter ReActV2 Retrieve SendStream SignatureMeta StatusMessage "
    "StatusMessageProvider StreamListener StreamResponse Teleprompter ToolCallResults Type apply_sync_streaming asyncify "
    "clients experimental infer_prefix load_settings predict primitives retrievers streamify streaming streaming_response "
    "BAMLAdapter BaseModule Citations DSPyError Document DummyLM LMAuthError LMConfigurationError LMNotConfiguredError "
    "LMProviderError LMStreamAssemblyError LMUnsupportedFeatureError ReActV2 Retrieve SendStream SignatureMeta StatusMessage "
    "bootstrap_trace_data clients datasets disable_litellm_logging disable_logging enable_litellm_logging enable_logging "
    "experimental infer_prefix load load_settings predict primitives retrievers streamify streaming streaming_response "
    "SandboxSerializable sync_send_to_stream syncify teleprompt utils with_callbacks".split()
)


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        where = ("dir(sigwire) lists them", "it is in sigwire.dspy (import sigwire.dspy as dspy)")[name in _DSPY_ONLY]
        raise AttributeError(f"sigwire has no public name {name!r}; {where}.", name=name, obj=sys.modules[__name__])
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _FrontDoor(ModuleType):
    """Keeps ``sigwire.settings`` the settings object. The import system binds each loaded submodule as an attribute of its
    package, and ``settings`` is the only submodule with the name of a public object. Pickles hold the name of the module."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "settings" and isinstance(value, ModuleType):
            value = value.settings
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _FrontDoor
