"""sigwire: typed signatures for language models. This file has the table of the public names.

Every public name is loaded on first use (PEP 562), so ``import sigwire`` loads no other module. Type checkers read
``__init__.pyi``, which ``python docs/tables.py`` makes from the table, as it makes docs/names.md. No module of the package but
the door imports this file.

cli, __main__  the command line               commands      its verbs, one file each
dspy           the door for DSPy programs     door_names    the names that only the door has
optimizers     searches for better programs   evaluate      evaluations, metrics, runs over many rows
experiments    grids of programs, models, optimizers, seeds and data sets
jobs           rows on many processes         retrieval     vectors, and the nearest texts
probes         what a model really does       cassettes     recorded and replayed traffic
testing        a fake provider on the loopback interface
modules        programs: Predict, ReAct ...   settings      defaults of the process, and contexts
adapters       signatures to requests, back   lm            models: providers, wires, policies
observe        listeners, usage, tracing      signatures    tasks as typed inputs and outputs
journal        runs that survive a kill       interpreters  where the code of models runs
durable        recorded time and chance       data          data sets
compaction     what requests of a long conversation leave out
mcp            servers of tools               media         bytes of images, sound and documents
files          files, locks and databases     core          values that all layers pass on
effects        steps and their drivers        show          cards of objects
keywords       unknown keywords               overriding    methods that a subclass may override
errors         every error, by the side that can fix it
tracebacks     how people see errors: without frames of the library

The public names, by groups:
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

__version__ = "0.1.0"

# Group -> module -> names, space-separated. A new public name is one word here; then run python docs/tables.py.
_NAMES: dict[str, dict[str, str]] = {
    "Signatures": {
        "sigwire.signatures.declarations": "InputField OutputField",
        "sigwire.signatures.signature": "Signature ensure_signature make_signature",
        "sigwire.signatures.types.text": "Code Reasoning",
        "sigwire.signatures.criteria": "Criteria",
        "sigwire.core.evidence": "DecisionRule Evidence",
    },
    "Programs": {
        "sigwire.modules.batch": "BatchRun",
        "sigwire.modules.cascade": "Cascade",
        "sigwire.modules.chain_of_thought": "ChainOfThought Reasoned",
        "sigwire.modules.module": "Module",
        "sigwire.modules.parallel": "Parallel",
        "sigwire.modules.predict": "Predict",
        "sigwire.modules.programs.files": "load_program save_program",
        "sigwire.modules.sampling.best_of_n": "BestOfN",
        "sigwire.modules.sampling.multi_chain": "MultiChainComparison",
        "sigwire.modules.sampling.refine": "Refine",
        "sigwire.retrieval.knn": "KNN",
    },
    "Agents": {
        "sigwire.modules.agents.react": "ReAct",
        "sigwire.modules.agents.run": "AgentRun ReActStep",
        "sigwire.modules.agents.session": "ChatSession",
        "sigwire.modules.agents.toolbox": "Toolbox",
        "sigwire.modules.context.compaction": "Compaction",
    },
    "Code of models": {
        "sigwire.interpreters.code_limits": "CodeLimits",
        "sigwire.interpreters.monty": "MontyInterpreter",
        "sigwire.interpreters.subprocess_interpreter": "SubprocessInterpreter",
        "sigwire.modules.code.code_act": "CodeAct",
        "sigwire.modules.code.program_of_thought": "ProgramOfThought",
        "sigwire.modules.code.rlm": "RLM",
    },
    "Tools": {
        "sigwire.core.tools.calls": "ToolCall ToolCalls ToolResult WebSearch",
        "sigwire.core.tools.choice": "ToolChoice",
        "sigwire.core.tools.injected": "Injected",
        "sigwire.core.tools.texts": "ToolText",
        "sigwire.core.tools.tool": "Tool",
        "sigwire.mcp.errors": "McpServerError",
        "sigwire.mcp.servers": "mcp_tools",
        "sigwire.modules.agents.running_call": "current_call",
        "sigwire.modules.memory": "Memory",
        "sigwire.modules.skills": "Skills",
    },
    "Models": {
        "sigwire.core.capabilities": "Capabilities",
        "sigwire.lm.base": "BaseLM LanguageModel",
        "sigwire.lm.client": "LM",
        "sigwire.lm.fake": "FakeLM",
        "sigwire.lm.policy.failover.health": "Health",
        "sigwire.lm.router": "Router",
    },
    "Policies": {
        "sigwire.lm.policy.cache.cache": "cache configure_cache",
        "sigwire.lm.policy.deadlines": "Timeout deadline",
        "sigwire.lm.policy.limits.limit": "Limit LimitState",
        "sigwire.lm.policy.limits.registry": "limits",
        "sigwire.lm.policy.money.budget": "Budget",
        "sigwire.lm.policy.money.prices": "Price prices",
        "sigwire.lm.policy.retry": "RetryPolicy",
    },
    "Adapters": {
        "sigwire.adapters.base": "Adapter",
        "sigwire.adapters.chat": "ChatAdapter",
        "sigwire.adapters.json": "JSONAdapter",
        "sigwire.adapters.two_step": "TwoStepAdapter",
        "sigwire.adapters.xml": "XMLAdapter",
    },
    "Requests and responses": {
        "sigwire.core.example": "Completions Prediction outputs_of",
        "sigwire.core.report": "CallReport",
        "sigwire.core.messages": "Message",
        "sigwire.core.request": "Request ResponseFormat",
        "sigwire.core.response": "Choice LMWarning Repair Response Usage",
        "sigwire.lm.preview.cache_health": "CacheHealth cache_health",
        "sigwire.observe.usage": "track_usage",
    },
    "Events of a stream": {
        "sigwire.core.events": (
            "ApprovalAsked AskStart Compacted FieldDelta FieldEnd FieldPartial Finished ProgramEvent ReasoningDelta "
            "TextDelta ToolCallDelta ToolCallEnd ToolCallStart ToolDone UsageUpdate"
        ),
        "sigwire.effects.cancellation": "StreamCancelled",
    },
    "Evaluation": {
        "sigwire.evaluate.calibration": "Calibration",
        "sigwire.evaluate.comparison": "Comparison ProgramDifference compare",
        "sigwire.evaluate.evaluation": "Evaluate load_records",
        "sigwire.evaluate.progress": "EvaluationProgress",
        "sigwire.evaluate.result": "EvaluationResult",
        "sigwire.evaluate.running.run": "EvaluationAborted EvaluationInterrupted ExampleDone",
        "sigwire.evaluate.scores": "MetricError Score",
    },
    "Experiments": {
        "sigwire.experiments.experiment": "Experiment",
        "sigwire.experiments.folder": "load_experiment",
        "sigwire.experiments.planning": "ExperimentPlan",
        "sigwire.experiments.progress": "ExperimentProgress",
        "sigwire.experiments.reproducing": "Reproduction reproduce",
        "sigwire.experiments.result": "ExperimentResult",
        "sigwire.experiments.running": "PointDone",
    },
    "Metrics": {
        "sigwire.evaluate.metrics.answers": "answer_exact_match answer_passage_match contains within",
        "sigwire.evaluate.metrics.bfcl": "bfcl_match load_bfcl",
        "sigwire.evaluate.metrics.judges": "CompleteAndGrounded JudgeError SemanticF1",
        "sigwire.evaluate.metrics.kappa": "agreement",
        "sigwire.evaluate.metrics.structured": "json_match matches_schema",
        "sigwire.evaluate.metrics.text": (
            "EM F1 HotPotF1 em_score f1_score hotpot_f1_score normalize_text precision_score"
        ),
        "sigwire.evaluate.metrics.tool_calls": "tool_call_match",
        "sigwire.evaluate.metrics.verdicts": "majority_judge pairwise_judge",
    },
    "Optimizers": {
        "sigwire.optimizers.certificate": "Certificate",
        "sigwire.optimizers.errors": "OptimizationInterrupted SearchPaused",
        "sigwire.optimizers.optimizer": "Optimizer",
        "sigwire.optimizers.progress": "SearchProgress",
        "sigwire.optimizers.reports.report": "OptimizationReport",
        "sigwire.optimizers.rules.better_together": "BetterTogether",
        "sigwire.optimizers.rules.bootstrap_few_shot": "BootstrapFewShot",
        "sigwire.optimizers.rules.calibrate": "Calibrate",
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
    },
    "Many rows": {
        "sigwire.evaluate.rows.map_result": "MapResult",
        "sigwire.evaluate.rows.map_rows": "Job amap_rows map_rows",
        "sigwire.jobs.errors": "JobRefused",
        "sigwire.lm.batch.driver": "BatchInDoubt",
        "sigwire.lm.batch.model": "BatchLM",
    },
    "Journal and approval": {
        "sigwire.journal.errors": "ApprovalNeeded JournalDivergence PendingCall RunIsLive ToolInterrupted",
        "sigwire.journal.journal": "Journal",
    },
    "Cassettes and previews": {
        "sigwire.cassettes.cassette": "Cassette",
        "sigwire.cassettes.errors": "CassetteMiss",
        "sigwire.lm.preview.model_call": "ModelCall",
        "sigwire.lm.preview.preview": "Preview",
        "sigwire.modules.preview.history": "history inspect_history",
        "sigwire.modules.preview.whole_program": "check preview_all",
        "sigwire.probes.report": "Verification VerificationInterrupted",
        "sigwire.probes.verify": "averify verify",
    },
    "Data and retrieval": {
        "sigwire.core.cards.examples": "Examples",
        "sigwire.core.example": "Example",
        "sigwire.data.reading": "load_examples",
        "sigwire.data.splitting": "DataSplit split_examples",
        "sigwire.retrieval.embedder": "Embedder",
        "sigwire.retrieval.embeddings": "Embeddings EmbeddingsWithScores",
    },
    "Media": {
        "sigwire.media.errors": "FetchError UnsupportedMedia",
        "sigwire.media.fetching": "fetch",
        "sigwire.media.policy": "FetchPolicy FetchedFile",
        "sigwire.signatures.types.media": "Audio File Image",
    },
    "Histories": {
        "sigwire.core.fold": "Fold",
        "sigwire.lm.histories.losses": "HistoryLoss Loss",
        "sigwire.lm.portable": "PortableHistory to_provider",
        "sigwire.signatures.types.history": "History",
    },
    "Settings": {
        "sigwire": "__version__",
        "sigwire.observe.callbacks": "BaseCallback",
        "sigwire.observe.tracing.logs": "log_to_stderr",
        "sigwire.settings": "configure context settings",
    },
    "Errors": {
        "sigwire.errors": (
            "AdapterParseError AgentStopped BudgetSpent CallerError ConfigurationError ContentFiltered "
            "ContextWindowExceededError DataError DemoWarning EmptyResponse EventLoopError InputError LMAuthenticationError "
            "LMBillingError LMError LMInvalidRequestError LMNotConfigured LMRateLimitError LMServerError "
            "LMTimeoutError LMTransportError LMUnexpectedError LMUnsupportedModelError MalformedToolCall ModelError "
            "OutputTruncated Refused RetryTool SessionBusy SignatureError SigwireError StateError ToolDefinitionError "
            "ToolFailed ToolWarning UnsupportedFeature Unsure Where is_retryable_lm_error"
        ),
    },
}
_MODULE_OF = {
    name: module for modules in _NAMES.values() for module, names in modules.items() for name in names.split()
}

__all__ = sorted(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(_advice(name), name=name, obj=None)  # with obj, Python adds the suggestion again
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)


def _advice(name: str) -> str:
    """Return an error text for a name that the table does not have."""
    if name in import_module("sigwire.door_names").DOOR_NAMES:
        names = import_module("sigwire.core.foreign_names")
        return (
            f"sigwire has no public name {name!r} (reading an attribute). It is in {names.DOOR}: "
            f"import {names.DOOR} as {names.NAMESPACE}."
        )
    if (
        name.isidentifier()
        and not name.startswith("_")
        and import_module("importlib.util").find_spec(f"sigwire.{name}")
    ):
        return f"The module sigwire.{name} is not imported yet (reading an attribute). Write import sigwire.{name}."
    hint = "" if name.startswith("_") else import_module("sigwire.errors").suggest(name, __all__)
    return f"sigwire has no public name {name!r} (reading an attribute). {hint}dir(sigwire) lists them."


def _page() -> str:
    """Return the names by groups, as help(sigwire) shows them."""
    lines: list[str] = []
    for group, modules in _NAMES.items():
        names = " ".join(modules.values()).split()
        lines += ["", group, *("    " + ", ".join(names[at : at + 5]) for at in range(0, len(names), 5))]
    return "\n".join(lines)


__doc__ = f"{__doc__}{_page()}\n"


class _FrontDoor(ModuleType):
    """Keeps ``sigwire.settings`` the settings object. The import system binds each loaded submodule as an attribute of its
    package, and ``settings`` is the only submodule with the name of a public object. Pickles hold the name of the module."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == "settings" and isinstance(value, ModuleType):
            value = value.settings
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _FrontDoor
