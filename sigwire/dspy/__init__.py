"""The door for DSPy programs: ``import sigwire.dspy as dspy``.

Every public name of ``sigwire`` is here and is loaded on first use (PEP 562). Some names have DSPy's arguments, methods
and attributes in addition, others exist only here. Every class of the door is a subclass of the core's class; nothing is
patched, and nothing in the core imports the door.

    adapters          DSPy's options of the four adapters     saving, loading   files that DSPy saved; ``load``
    agents            ReAct, ReActV2, AgentRun                settings          hints for DSPy's settings, send_stream
    agent_history     turns of agents in a ``History``        signatures        fields, and the names of dspy.signatures
    cache             DSPy's methods of the cache
    cached_functions  request_cache                           streamify         streamify, listeners, messages
    called_models     objects that are called as models
    call_history      GLOBAL_HISTORY, inspect_history         streaming         the names of dspy.streaming
    callback          with_callbacks                          teleprompt        the optimizers, as in dspy.teleprompt
    clients           the names of dspy.clients               text_loop         DSPy's loop of an agent in text
    dsp               the names of dspy.dsp                   tools             Tool, ToolCalls
    experimental      the names of dspy.experimental          type_methods      DSPy's methods of field types
    inputs            checks of the inputs of a call          types             fields: Type, Document, Image, History ...
    lm                LM, BaseLM, DummyLM                     datasets          Dataset, DataLoader, GSM8K, MATH
    marks             media in the text of a prompt           evaluate          the names of dspy.evaluate
    missing           names of DSPy that are not here         layouts           parts of the prompts of adapters
    decisions         decided outputs, as in DSPy
    modules           Module, Predict, ChainOfThought         models, optimizers  parts of lm, of teleprompt
    paths             DSPy's module paths without a file      predict, primitives, utils  the names of DSPy's packages
    retrievers        Embeddings, Retrieve                    typesafe          TypeSafe, a client of System One
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

import sigwire

# The module of each name that is not the core's own. Type checkers read __init__.pyi, which python docs/tables.py makes from
# this table and the table of sigwire.
_MODULES = {
    "sigwire.dspy.adapters": "Adapter BAMLAdapter ChatAdapter JSONAdapter TwoStepAdapter XMLAdapter",
    "sigwire.dspy.agents": "AgentRun ReAct ReActV2",
    "sigwire.dspy.cache": "cache configure_cache",
    "sigwire.dspy.call_history": "inspect_history",
    "sigwire.dspy.lm": "BaseLM DummyLM LM",
    "sigwire.dspy.modules": "ChainOfThought Module Predict",
    "sigwire.dspy.predict.code": "CodeAct ProgramOfThought RLM",
    "sigwire.dspy.predict.composites": "BestOfN MultiChainComparison Parallel Refine",
    "sigwire.dspy.predict.nearest": "KNN",
    "sigwire.dspy.primitives": "BaseModule",
    "sigwire.dspy.primitives.interpreters": (
        "CodeExecutionError CodeInterpreter CodeInterpreterError FinalOutput LocalInterpreter PythonInterpreter"
    ),
    "sigwire.dspy.primitives.repl_types": "SandboxSerializable",
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
    "sigwire.dspy.callback": "BaseCallback with_callbacks",
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

__all__ = sorted({*sigwire.__all__, *_MODULE_OF, *_FOLDERS})  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if name in _FOLDERS:
        return import_module(f"{__name__}.{name}")
    if name in ("AvatarOptimizer", "BootstrapFinetune", "GRPO"):  # not public: their ``compile`` raises
        return getattr(import_module(f"{__name__}.teleprompt"), name)
    if name not in __all__:
        instead = import_module(f"{__name__}.missing").advice(name)
        text = f"sigwire.dspy has no public name {name!r} (reading an attribute). {instead}"
        raise AttributeError(text, name=name, obj=None)  # with obj, Python adds the suggestion again
    value = getattr(import_module(_MODULE_OF[name]) if name in _MODULE_OF else sigwire, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)


class _Door(ModuleType):
    """The import system binds a submodule as an attribute of its package; ``cache``, ``settings`` and ``streamify`` are
    the objects of that name."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in ("cache", "settings", "streamify") and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return import_module, (self.__name__,)


class _LastFinder:
    """The import of a name that the door lacks on purpose raises what to use instead.

    ``importlib.util.find_spec`` asks whether a name is there, and gets ``None``: its caller tries DSPy's old places of a name.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        # Both come through importlib._bootstrap._find_spec, without an argument that differs.
        if name.startswith(f"{__name__}.") and sys._getframe(2).f_globals.get("__name__") != "importlib.util":  # pyright: ignore[reportPrivateUsage]
            import_module(f"{__name__}.missing").check_import(name.removeprefix(f"{__name__}."))


sys.modules[__name__].__class__ = _Door
sys.meta_path.append(_LastFinder)
