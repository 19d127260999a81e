"""The names that only the door has, for the advice of ``sigwire`` about an unknown name.

Made by ``python docs/tables.py`` from the table of the door.
"""

from __future__ import annotations

__all__ = ["DOOR_NAMES"]

DOOR_NAMES = frozenset(
    {
        "BAMLAdapter",
        "BaseModule",
        "Citations",
        "CodeExecutionError",
        "CodeInterpreter",
        "CodeInterpreterError",
        "DSPyError",
        "Document",
        "DummyLM",
        "FinalOutput",
        "LMAuthError",
        "LMConfigurationError",
        "LMNotConfiguredError",
        "LMProviderError",
        "LMStreamAssemblyError",
        "LMUnsupportedFeatureError",
        "LocalInterpreter",
        "PythonInterpreter",
        "ReActV2",
        "Retrieve",
        "SandboxSerializable",
        "SendStream",
        "SignatureMeta",
        "StatusMessage",
        "StatusMessageProvider",
        "StreamListener",
        "StreamResponse",
        "Teleprompter",
        "ToolCallResults",
        "Type",
        "apply_sync_streaming",
        "asyncify",
        "bootstrap_trace_data",
        "clients",
        "datasets",
        "disable_litellm_logging",
        "disable_logging",
        "enable_litellm_logging",
        "enable_logging",
        "experimental",
        "infer_prefix",
        "load",
        "load_settings",
        "predict",
        "primitives",
        "retrievers",
        "streamify",
        "streaming",
        "streaming_response",
        "sync_send_to_stream",
        "syncify",
        "teleprompt",
        "utils",
        "with_callbacks",
    }
)
