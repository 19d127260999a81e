"""The tables: behaviours that do not hold on DSPy 3.4.1, and those that do not hold on the door, each with its reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).parent
FILES = sorted(
    path.stem for path in FOLDER.glob("*.py") if path.stem not in ("__main__", "conftest", "results", "support")
)
_STORED = json.loads((FOLDER / "holds.json").read_text(encoding="utf-8"))
VERSION: str = _STORED["version"]
FAILS_ON_DSPY = frozenset[str](_STORED["fails"])

# The reason by behaviour of those that hold on DSPy and not on the door.
LISTED: dict[str, str] = {}
_REASONS = {
    # Prompts, reprs and messages are the door's own; adapters write types in TypeScript's notation, in every adapter.
    "exact wording": """
        adapters_baml/baml_basic adapters_baml/baml_basic_exact adapters_baml/baml_optional adapters_baml/baml_primitives
        adapters_baml/baml_lists adapters_baml/baml_complex adapters_baml/baml_inputs_indented
        adapters_baml/baml_missing_name adapters_baml/baml_shorter adapters_baml/baml_multi
        adapters_chat/chat_literal_0 adapters_chat/chat_literal_2 adapters_chat/chat_literal_python_form
        adapters_chat/chat_models adapters_chat/chat_field_information adapters_chat/chat_input_structure
        adapters_chat/chat_parse_error_text adapters_chat/chat_history_newline adapters_chat/chat_incomplete_demo_mark
        adapters_chat/chat_system_message adapters_chat/two_call
        adapters_json_and_xml/json_model_both adapters_json_and_xml/json_history_indent
        adapters_json_and_xml/json_system_message adapters_json_and_xml/xml_prompt
        adapters_tools/chat_tool_text_exact adapters_tools/json_tool_text_exact adapters_tools/xml_tool_text_exact
        field_types/citations_kept_schema library/experimental_call library/example_attrs
        predict/predict_constraints_chat predict/predict_constraints_json records/example_repr_exact
        signatures/signature_instructions_default signatures/signature_constraints
    """,
    # Each is named in docs/coming-from-dspy.md.
    "on purpose": """
        adapters_baml/baml_circular adapters_chat/chat_null_content
        adapters_chat/chat_empty_content adapters_json_and_xml/json_structured_is_model
        adapters_json_and_xml/json_dict_output_object_mode adapters_json_and_xml/json_toolcalls_text_object_mode
        decisions/broken_evidence_of_a_client_is_a_value_error decisions/names_are_experimental_only
        decisions/weights_that_leave_no_probability_are_an_error
        field_types/type_custom_blocks_in_message field_types/document_in_prompt field_types/document_list_in_prompt
        field_types/document_wrapped_json
        models/cache_put modules/program_pickle modules/program_history_default
        predict/endpoint_7 predict/endpoint_8 predict/predict_missing_required
        predict/predict_typed_demos
        tools/tool_id_absent_in_container
    """,
    "not built": """
        adapters_chat/chat_float_underscores adapters_tools/vague_list agents/react_image
        models/lm_provider_attrs modules/meta_names
        optimizers/bootstrap_validation_attr optimizers/knn_few_shot
        signatures/signature_state_unnamed
    """,
}
for _reason, _names in _REASONS.items():
    LISTED |= dict.fromkeys(_names.split(), _reason)


def load_behaviours() -> tuple[list[str], Callable[[str], str]]:
    """Import the files on the library that ``dspy`` is; return the names and the function that runs one."""
    for name in FILES:
        import_module(f"tests.dspy.behaviours.{name}")
    support = import_module("tests.dspy.behaviours.support")
    return list(support.BEHAVIOURS), support.failure_of
