# isort: skip_file
# Made by python docs/tables.py from the table of names in sigwire/__init__.py.

# Signatures
from sigwire.core.evidence import DecisionRule, Evidence
from sigwire.signatures.criteria import Criteria
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature, ensure_signature, make_signature
from sigwire.signatures.types.text import Code, Reasoning

# Programs
from sigwire.modules.batch import BatchRun
from sigwire.modules.cascade import Cascade
from sigwire.modules.chain_of_thought import ChainOfThought, Reasoned
from sigwire.modules.module import Module
from sigwire.modules.parallel import Parallel
from sigwire.modules.predict import Predict
from sigwire.modules.programs.files import load_program, save_program
from sigwire.modules.sampling.best_of_n import BestOfN
from sigwire.modules.sampling.multi_chain import MultiChainComparison
from sigwire.modules.sampling.refine import Refine
from sigwire.retrieval.knn import KNN

# Agents
from sigwire.modules.agents.react import ReAct
from sigwire.modules.agents.run import AgentRun, ReActStep
from sigwire.modules.agents.session import ChatSession
from sigwire.modules.agents.toolbox import Toolbox
from sigwire.modules.context.compaction import Compaction

# Code of models
from sigwire.interpreters.code_limits import CodeLimits
from sigwire.interpreters.monty import MontyInterpreter
from sigwire.interpreters.subprocess_interpreter import SubprocessInterpreter
from sigwire.modules.code.code_act import CodeAct
from sigwire.modules.code.program_of_thought import ProgramOfThought
from sigwire.modules.code.rlm import RLM

# Tools
from sigwire.core.tools.calls import ToolCall, ToolCalls, ToolResult, WebSearch
from sigwire.core.tools.choice import ToolChoice
from sigwire.core.tools.injected import Injected
from sigwire.core.tools.texts import ToolText
from sigwire.core.tools.tool import Tool
from sigwire.mcp.errors import McpServerError
from sigwire.mcp.servers import mcp_tools
from sigwire.modules.agents.running_call import current_call
from sigwire.modules.memory import Memory
from sigwire.modules.skills import Skills

# Models
from sigwire.core.capabilities import Capabilities
from sigwire.lm.base import BaseLM, LanguageModel
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.lm.policy.failover.health import Health
from sigwire.lm.router import Router

# Policies
from sigwire.lm.policy.cache.cache import cache, configure_cache
from sigwire.lm.policy.deadlines import Timeout, deadline
from sigwire.lm.policy.limits.limit import Limit, LimitState
from sigwire.lm.policy.limits.registry import limits
from sigwire.lm.policy.money.budget import Budget
from sigwire.lm.policy.money.prices import Price, prices
from sigwire.lm.policy.retry import RetryPolicy

# Adapters
from sigwire.adapters.base import Adapter
from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.two_step import TwoStepAdapter
from sigwire.adapters.xml import XMLAdapter

# Requests and responses
from sigwire.core.example import Completions, Prediction, outputs_of
from sigwire.core.messages import Message
from sigwire.core.report import CallReport
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice, LMWarning, Repair, Response, Usage
from sigwire.lm.preview.cache_health import CacheHealth, cache_health
from sigwire.observe.usage import track_usage

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
from sigwire.optimizers.certificate import Certificate
from sigwire.optimizers.errors import OptimizationInterrupted, SearchPaused
from sigwire.optimizers.optimizer import Optimizer
from sigwire.optimizers.progress import SearchProgress
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rules.better_together import BetterTogether
from sigwire.optimizers.rules.bootstrap_few_shot import BootstrapFewShot
from sigwire.optimizers.rules.calibrate import Calibrate
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
from sigwire.lm.preview.model_call import ModelCall
from sigwire.lm.preview.preview import Preview
from sigwire.modules.preview.history import history, inspect_history
from sigwire.modules.preview.whole_program import check, preview_all
from sigwire.probes.report import Verification, VerificationInterrupted
from sigwire.probes.verify import averify, verify

# Data and retrieval
from sigwire.core.cards.examples import Examples
from sigwire.core.example import Example
from sigwire.data.reading import load_examples
from sigwire.data.splitting import DataSplit, split_examples
from sigwire.retrieval.embedder import Embedder
from sigwire.retrieval.embeddings import Embeddings, EmbeddingsWithScores

# Media
from sigwire.media.errors import FetchError, UnsupportedMedia
from sigwire.media.fetching import fetch
from sigwire.media.policy import FetchPolicy, FetchedFile
from sigwire.signatures.types.media import Audio, File, Image

# Histories
from sigwire.core.fold import Fold
from sigwire.lm.histories.losses import HistoryLoss, Loss
from sigwire.lm.portable import PortableHistory, to_provider
from sigwire.signatures.types.history import History

# Settings
__version__: str
from sigwire.observe.callbacks import BaseCallback
from sigwire.observe.tracing.logs import log_to_stderr
from sigwire.settings import configure, context, settings

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
    "BaseCallback",
    "BaseLM",
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
    "Code",
    "CodeAct",
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
    "DataError",
    "DataSplit",
    "DecisionRule",
    "DemoWarning",
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
    "LMAuthenticationError",
    "LMBillingError",
    "LMError",
    "LMInvalidRequestError",
    "LMNotConfigured",
    "LMRateLimitError",
    "LMServerError",
    "LMTimeoutError",
    "LMTransportError",
    "LMUnexpectedError",
    "LMUnsupportedModelError",
    "LMWarning",
    "LabeledFewShot",
    "LanguageModel",
    "Limit",
    "LimitState",
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
    "ReAct",
    "ReActStep",
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
    "RetryPolicy",
    "RetryTool",
    "Router",
    "RunIsLive",
    "Score",
    "SearchPaused",
    "SearchProgress",
    "SemanticF1",
    "SessionBusy",
    "Signature",
    "SignatureError",
    "SigwireError",
    "Skills",
    "StateError",
    "StreamCancelled",
    "SubprocessInterpreter",
    "TextDelta",
    "Timeout",
    "Tool",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallEnd",
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
    "agreement",
    "amap_rows",
    "answer_exact_match",
    "answer_passage_match",
    "averify",
    "bfcl_match",
    "cache",
    "cache_health",
    "check",
    "compare",
    "configure",
    "configure_cache",
    "contains",
    "context",
    "current_call",
    "deadline",
    "em_score",
    "ensure_signature",
    "f1_score",
    "fetch",
    "history",
    "hotpot_f1_score",
    "inspect_history",
    "is_retryable_lm_error",
    "json_match",
    "limits",
    "load_bfcl",
    "load_examples",
    "load_experiment",
    "load_program",
    "load_records",
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
    "preview_all",
    "prices",
    "reproduce",
    "save_program",
    "settings",
    "split_examples",
    "to_provider",
    "tool_call_match",
    "track_usage",
    "verify",
    "within",
]
