"""The parts of a module, which are modules, predictors and values in its attributes.

walk     paths and names of the parts      copying  copies: structure is copied, resources are shared
saving   state as one JSON object, and back     sharing  modules that tools use and do not hold, in words
"""

from sigwire.core.paths import AttributeStep, Path, Walkable, name_of
from sigwire.core.tools.held import Memo
from sigwire.modules.tree.copying import copy_attributes, copy_value
from sigwire.modules.tree.saving import plain_records, prepare_one
from sigwire.modules.tree.walk import Parameter, Predictor, is_held, parts_of, path_between, walk

__all__ = [
    "AttributeStep",
    "Memo",
    "Parameter",
    "Path",
    "Predictor",
    "Walkable",
    "copy_attributes",
    "copy_value",
    "is_held",
    "name_of",
    "parts_of",
    "path_between",
    "plain_records",
    "prepare_one",
    "walk",
]
