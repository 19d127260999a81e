# isort: skip_file
# Made by python docs/tables.py from the table of names in sigwire/dspy/__init__.py.

# Signatures
from sigwire.core.evidence import DecisionRule, Evidence
from sigwire.dspy.signatures import InputField, OutputField
from sigwire.dspy.types import Code, Reasoning
from sigwire.signatures.criteria import Criteria
from sigwire.signatures.signature import Signature, ensure_signature, make_signature

# Programs
from sigwire.dspy.modules import ChainOfThought, Module, Predict
from sigwire.dspy.predict.composites import BestOfN, MultiChainComparison, Parallel, Refine
from sigwire.dspy.predict.nearest import KNN
from sigwire.modules.batch import BatchRun
from sigwire.modules.cascade import Cascade
from sigwire.modules.chain_of_thought import Reasoned
from sigwire.modules.programs.files import load_program, save_program

# Agents
from sigwire.dspy.agents import AgentRun, ReAct
from sigwire.modules.agents.run import ReActStep
from sigwire.modules.agents.session import ChatSession
from sigwire.modules.agents.toolbox import Toolbox
from sigwire.modules.context.compaction import Compaction

# Code of models
from sigwire.dspy.predict.code import RLM, CodeAct, ProgramOfThought
from sigwire.interpreters.code_limits import CodeLimits
from sigwire.interpreters.monty import MontyInterpreter
from sigwire.interpreters.subprocess_interpreter import SubprocessInterpreter

# Tools
from sigwire.core.tools.calls import ToolCall, ToolResult, WebSearch
from sigwire.core.tools.choice import ToolChoice
from sigwire.core.tools.injected import Injected
from sigwire.core.tools.texts import ToolText
from sigwire.dspy.tools import Tool, ToolCalls
from sigwire.mcp.errors import McpServerError
from sigwire.mcp.servers import mcp_tools
from sigwire.modules.agents.running_call import current_call
from sigwire.modules.memory import Memory
from sigwire.modules.skills import Skills

# Models
from sigwire.core.capabilities import Capabilities
from sigwire.dspy.lm import LM, BaseLM
from sigwire.lm.base import LanguageModel
from sigwire.lm.fake import FakeLM
from sigwire.lm.policy.failover.health import Health
from sigwire.lm.router import Router

# Policies
from sigwire.dspy.cache import cache, configure_cache
from sigwire.lm.policy.deadlines import Timeout, deadline
from sigwire.lm.policy.limits.limit import Limit, LimitState
from sigwire.lm.policy.limits.registry import limits
from sigwire.lm.policy.money.budget import Budget
from sigwire.lm.policy.money.prices import Price, prices
from sigwire.lm.policy.retry import RetryPolicy

# Adapters
from sigwire.dspy.adapters import Adapter, ChatAdapter, JSONAdapter, TwoStepAdapter, XMLAdapter

# Requests and responses
from sigwire.core.example import Completions, Prediction, outputs_of
from sigwire.core.messages import Message
from sigwire.core.report import CallReport
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice, LMWarning, Repair, Response, Usage
from sigwire.dspy.settings import track_usage
from sigwire.lm.preview.cache_health import CacheHealth, cache_health

# Events of a stream
from sigwire.core.events import (
    ApprovalAsked,
    AskStart,
    Compacted,
    FieldDelta,
    FieldEnd,
    FieldPartial,
    Finished,
    ProgramEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolDone,
    UsageUpdate,
)
from sigwire.effects.cancellation import StreamCancelled

# Evaluation
from sigwire.evaluate.calibration import Calibration
from sigwire.evaluate.comparison import Comparison, ProgramDifference, compare
from sigwire.evaluate.evaluation import Evaluate, load_records
from sigwire.evaluate.progress import EvaluationProgress
from sigwire.evaluate.result import EvaluationResult
from sigwire.evaluate.running.run import EvaluationAborted, EvaluationInterrupted, ExampleDone
from sigwire.evaluate.scores import MetricError, Score

# Experiments
from sigwire.experiments.experiment import Experiment
from sigwire.experiments.folder import load_experiment
from sigwire.experiments.planning import ExperimentPlan
from sigwire.experiments.progress import ExperimentProgress
from sigwire.experiments.reproducing import Reproduction, reproduce
from sigwire.experiments.result import ExperimentResult
from sigwire.experiments.running import PointDone

# Metrics
from sigwire.evaluate.metrics.answers import answer_exact_match, answer_passage_match, contains, within
from sigwire.evaluate.metrics.bfcl import bfcl_match, load_bfcl
from sigwire.evaluate.metrics.judges import CompleteAndGrounded, JudgeError, SemanticF1
from sigwire.evaluate.metrics.kappa import agreement
from sigwire.evaluate.metrics.structured import json_match, matches_schema
from sigwire.evaluate.metrics.text import (
    EM,
    F1,
    HotPotF1,
    em_score,
    f1_score,
    hotpot_f1_score,
    normalize_text,
    precision_score,
)
from sigwire.evaluate.metrics.tool_calls import tool_call_match
from sigwire.evaluate.metrics.verdicts import majority_judge, pairwise_judge

# Optimizers
from sigwire.dspy.teleprompt import (
    COPRO,
    GEPA,
    BetterTogether,
    BootstrapFewShotWithRandomSearch,
    BootstrapRS,
    KNNFewShot,
    LabeledFewShot,
)
from sigwire.optimizers.certificate import Certificate
from sigwire.optimizers.errors import OptimizationInterrupted, SearchPaused
from sigwire.optimizers.optimizer import Optimizer
from sigwire.optimizers.progress import SearchProgress
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
from sigwire.optimizers.rules.calibrate import Calibrate
from sigwire.optimizers.rules.ensemble import Ensemble, majority
from sigwire.optimizers.rules.infer_rules import InferRules
from sigwire.optimizers.rules.miprov2 import MIPROv2
from sigwire.optimizers.rules.optuna_search import BootstrapFewShotWithOptuna
from sigwire.optimizers.rules.simba import SIMBA

# Many rows
from sigwire.evaluate.rows.map_result import MapResult
from sigwire.evaluate.rows.map_rows import Job, amap_rows, map_rows
from sigwire.jobs.errors import JobRefused
from sigwire.lm.batch.driver import BatchInDoubt
from sigwire.lm.batch.model import BatchLM

# Journal and approval
from sigwire.journal.errors import ApprovalNeeded, JournalDivergence, PendingCall, RunIsLive, ToolInterrupted
from sigwire.journal.journal import Journal

# Cassettes and previews
from sigwire.cassettes.cassette import Cassette
from sigwire.cassettes.errors import CassetteMiss
from sigwire.dspy.call_history import inspect_history
from sigwire.lm.preview.model_call import ModelCall
from sigwire.lm.preview.preview import Preview
from sigwire.modules.preview.history import history
from sigwire.modules.preview.whole_program import check, preview_all
from sigwire.probes.report import Verification, VerificationInterrupted
from sigwire.probes.verify import averify, verify

# Data and retrieval
from sigwire.core.cards.examples import Examples
from sigwire.core.example import Example
from sigwire.data.reading import load_examples
from sigwire.data.splitting import DataSplit, split_examples
from sigwire.dspy.retrievers import Embeddings, EmbeddingsWithScores
from sigwire.retrieval.embedder import Embedder

# Media
from sigwire.dspy.types import Audio, File, Image
from sigwire.media.errors import FetchError, UnsupportedMedia
from sigwire.media.fetching import fetch
from sigwire.media.policy import FetchPolicy, FetchedFile

# Histories
from sigwire.core.fold import Fold
from sigwire.dspy.types import History
from sigwire.lm.histories.losses import HistoryLoss, Loss
from sigwire.lm.portable import PortableHistory, to_provider

# Settings
from sigwire import __version__
from sigwire.dspy.callback import BaseCallback
from sigwire.dspy.settings import configure, context, settings
from sigwire.observe.tracing.logs import log_to_stderr

# Errors
from sigwire.errors import (
    AdapterParseError,
    AgentStopped,
    BudgetSpent,
    CallerError,
    ConfigurationError,
    ContentFiltered,
    ContextWindowExceededError,
    DataError,
    DemoWarning,
    EmptyResponse,
    EventLoopError,
    InputError,
    LMAuthenticationError,
    LMBillingError,
    LMError,
    LMInvalidRequestError,
    LMNotConfigured,
    LMRateLimitError,
    LMServerError,
    LMTimeoutError,
    LMTransportError,
    LMUnexpectedError,
    LMUnsupportedModelError,
    MalformedToolCall,
    ModelError,
    OutputTruncated,
    Refused,
    RetryTool,
    SessionBusy,
    SignatureError,
    SigwireError,
    StateError,
    ToolDefinitionError,
    ToolFailed,
    ToolWarning,
    UnsupportedFeature,
    Unsure,
    Where,
    is_retryable_lm_error,
)

# Only in sigwire.dspy
from sigwire.dspy import (
    adapters,
    clients,
    datasets,
    evaluate,
    experimental,
    predict,
    primitives,
    retrievers,
    signatures,
    streaming,
    teleprompt,
    utils,
)
from sigwire.dspy.adapters import BAMLAdapter
from sigwire.dspy.agents import ReActV2
from sigwire.dspy.callback import with_callbacks
from sigwire.dspy.lm import DummyLM
from sigwire.dspy.loading import load
from sigwire.dspy.primitives import BaseModule
from sigwire.dspy.primitives.interpreters import (
    CodeExecutionError,
    CodeInterpreter,
    CodeInterpreterError,
    FinalOutput,
    LocalInterpreter,
    PythonInterpreter,
)
from sigwire.dspy.primitives.repl_types import SandboxSerializable
from sigwire.dspy.retrievers import Retrieve
from sigwire.dspy.settings import load_settings
from sigwire.dspy.signatures import SignatureMeta, infer_prefix
from sigwire.dspy.streamify import (
    SendStream,
    StatusMessage,
    StatusMessageProvider,
    StreamListener,
    StreamResponse,
    apply_sync_streaming,
    streamify,
    streaming_response,
    sync_send_to_stream,
)
from sigwire.dspy.teleprompt import Teleprompter, bootstrap_trace_data
from sigwire.dspy.tools import ToolCallResults
from sigwire.dspy.types import Citations, Document, Type
from sigwire.dspy.utils.both_forms import asyncify, syncify
from sigwire.dspy.utils.exceptions import (
    DSPyError,
    LMAuthError,
    LMConfigurationError,
    LMNotConfiguredError,
    LMProviderError,
    LMStreamAssemblyError,
    LMUnsupportedFeatureError,
)
from sigwire.dspy.utils.logging_utils import (
    disable_litellm_logging,
    disable_logging,
    enable_litellm_logging,
    enable_logging,
)

__all__ = [
    "COPRO",
    "EM",
    "F1",
    "GEPA",
    "KNN",
    "LM",
    "RLM",
    "SIMBA",
    "Adapter",
    "AdapterParseError",
    "AgentRun",
    "AgentStopped",
    "ApprovalAsked",
    "ApprovalNeeded",
    "AskStart",
    "Audio",
    "BAMLAdapter",
    "BaseCallback",
    "BaseLM",
    "BaseModule",
    "BatchInDoubt",
    "BatchLM",
    "BatchRun",
    "BestOfN",
    "BetterTogether",
    "BootstrapFewShot",
    "BootstrapFewShotWithOptuna",
    "BootstrapFewShotWithRandomSearch",
    "BootstrapRS",
    "Budget",
    "BudgetSpent",
    "CacheHealth",
    "Calibrate",
    "Calibration",
    "CallReport",
    "CallerError",
    "Capabilities",
    "Cascade",
    "Cassette",
    "CassetteMiss",
    "Certificate",
    "ChainOfThought",
    "ChatAdapter",
    "ChatSession",
    "Choice",
    "Citations",
    "Code",
    "CodeAct",
    "CodeExecutionError",
    "CodeInterpreter",
    "CodeInterpreterError",
    "CodeLimits",
    "Compacted",
    "Compaction",
    "Comparison",
    "CompleteAndGrounded",
    "Completions",
    "ConfigurationError",
    "ContentFiltered",
    "ContextWindowExceededError",
    "Criteria",
    "DSPyError",
    "DataError",
    "DataSplit",
    "DecisionRule",
    "DemoWarning",
    "Document",
    "DummyLM",
    "Embedder",
    "Embeddings",
    "EmbeddingsWithScores",
    "EmptyResponse",
    "Ensemble",
    "Evaluate",
    "EvaluationAborted",
    "EvaluationInterrupted",
    "EvaluationProgress",
    "EvaluationResult",
    "EventLoopError",
    "Evidence",
    "Example",
    "ExampleDone",
    "Examples",
    "Experiment",
    "ExperimentPlan",
    "ExperimentProgress",
    "ExperimentResult",
    "FakeLM",
    "FetchError",
    "FetchPolicy",
    "FetchedFile",
    "FieldDelta",
    "FieldEnd",
    "FieldPartial",
    "File",
    "FinalOutput",
    "Finished",
    "Fold",
    "Health",
    "History",
    "HistoryLoss",
    "HotPotF1",
    "Image",
    "InferRules",
    "Injected",
    "InputError",
    "InputField",
    "JSONAdapter",
    "Job",
    "JobRefused",
    "Journal",
    "JournalDivergence",
    "JudgeError",
    "KNNFewShot",
    "LMAuthError",
    "LMAuthenticationError",
    "LMBillingError",
    "LMConfigurationError",
    "LMError",
    "LMInvalidRequestError",
    "LMNotConfigured",
    "LMNotConfiguredError",
    "LMProviderError",
    "LMRateLimitError",
    "LMServerError",
    "LMStreamAssemblyError",
    "LMTimeoutError",
    "LMTransportError",
    "LMUnexpectedError",
    "LMUnsupportedFeatureError",
    "LMUnsupportedModelError",
    "LMWarning",
    "LabeledFewShot",
    "LanguageModel",
    "Limit",
    "LimitState",
    "LocalInterpreter",
    "Loss",
    "MIPROv2",
    "MalformedToolCall",
    "MapResult",
    "McpServerError",
    "Memory",
    "Message",
    "MetricError",
    "ModelCall",
    "ModelError",
    "Module",
    "MontyInterpreter",
    "MultiChainComparison",
    "OptimizationInterrupted",
    "OptimizationReport",
    "Optimizer",
    "OutputField",
    "OutputTruncated",
    "Parallel",
    "PendingCall",
    "PointDone",
    "PortableHistory",
    "Predict",
    "Prediction",
    "Preview",
    "Price",
    "ProgramDifference",
    "ProgramEvent",
    "ProgramOfThought",
    "PythonInterpreter",
    "ReAct",
    "ReActStep",
    "ReActV2",
    "Reasoned",
    "Reasoning",
    "ReasoningDelta",
    "Refine",
    "Refused",
    "Repair",
    "Reproduction",
    "Request",
    "Response",
    "ResponseFormat",
    "Retrieve",
    "RetryPolicy",
    "RetryTool",
    "Router",
    "RunIsLive",
    "SandboxSerializable",
    "Score",
    "SearchPaused",
    "SearchProgress",
    "SemanticF1",
    "SendStream",
    "SessionBusy",
    "Signature",
    "SignatureError",
    "SignatureMeta",
    "SigwireError",
    "Skills",
    "StateError",
    "StatusMessage",
    "StatusMessageProvider",
    "StreamCancelled",
    "StreamListener",
    "StreamResponse",
    "SubprocessInterpreter",
    "Teleprompter",
    "TextDelta",
    "Timeout",
    "Tool",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallResults",
    "ToolCallStart",
    "ToolCalls",
    "ToolChoice",
    "ToolDefinitionError",
    "ToolDone",
    "ToolFailed",
    "ToolInterrupted",
    "ToolResult",
    "ToolText",
    "ToolWarning",
    "Toolbox",
    "TwoStepAdapter",
    "Type",
    "UnsupportedFeature",
    "UnsupportedMedia",
    "Unsure",
    "Usage",
    "UsageUpdate",
    "Verification",
    "VerificationInterrupted",
    "WebSearch",
    "Where",
    "XMLAdapter",
    "__version__",
    "adapters",
    "agreement",
    "amap_rows",
    "answer_exact_match",
    "answer_passage_match",
    "apply_sync_streaming",
    "asyncify",
    "averify",
    "bfcl_match",
    "bootstrap_trace_data",
    "cache",
    "cache_health",
    "check",
    "clients",
    "compare",
    "configure",
    "configure_cache",
    "contains",
    "context",
    "current_call",
    "datasets",
    "deadline",
    "disable_litellm_logging",
    "disable_logging",
    "em_score",
    "enable_litellm_logging",
    "enable_logging",
    "ensure_signature",
    "evaluate",
    "experimental",
    "f1_score",
    "fetch",
    "history",
    "hotpot_f1_score",
    "infer_prefix",
    "inspect_history",
    "is_retryable_lm_error",
    "json_match",
    "limits",
    "load",
    "load_bfcl",
    "load_examples",
    "load_experiment",
    "load_program",
    "load_records",
    "load_settings",
    "log_to_stderr",
    "majority",
    "majority_judge",
    "make_signature",
    "map_rows",
    "matches_schema",
    "mcp_tools",
    "normalize_text",
    "outputs_of",
    "pairwise_judge",
    "precision_score",
    "predict",
    "preview_all",
    "prices",
    "primitives",
    "reproduce",
    "retrievers",
    "save_program",
    "settings",
    "signatures",
    "split_examples",
    "streamify",
    "streaming",
    "streaming_response",
    "sync_send_to_stream",
    "syncify",
    "teleprompt",
    "to_provider",
    "tool_call_match",
    "track_usage",
    "utils",
    "verify",
    "with_callbacks",
    "within",
]
