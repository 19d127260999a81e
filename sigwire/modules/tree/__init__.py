"""The parts of a module, which are modules, predictors and values in its attributes.

walk     paths and names of the parts      copying  copies: structure is copied, resources are shared
saving   state as one JSON object, and back
"""

from sigwire.modules.tree.copying import CopyMemo, copy_value
from sigwire.modules.tree.saving import plain_records, prepare_one
from sigwire.modules.tree.walk import (
    AttributeStep,
    Parameter,
    Path,
    Predictor,
    Walkable,
    name_of,
    parts_of,
    path_between,
)

__all__ = [
    "AttributeStep",
    "CopyMemo",
    "Parameter",
    "Path",
    "Predictor",
    "Walkable",
    "copy_value",
    "name_of",
    "parts_of",
    "path_between",
    "plain_records",
    "prepare_one",
]
