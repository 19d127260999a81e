"""The names of ``dspy.predict``: the modules. DSPy's modules below it (``dspy.predict.react``) are this module.

code     CodeAct, ProgramOfThought, RLM                  repl     the parts of RLM: tools, prompts, a run
nearest  KNN with the vectors of its examples            composites  modules around modules
"""

from __future__ import annotations

from sigwire.core.record import to_plain as serialize_object
from sigwire.dspy.agents import ReAct, ReActV2
from sigwire.dspy.modules import ChainOfThought, Predict
from sigwire.dspy.paths import add_paths
from sigwire.dspy.predict.code import RLM, CodeAct, ProgramOfThought
from sigwire.dspy.predict.composites import BestOfN, MultiChainComparison, Parallel, Refine
from sigwire.dspy.predict.nearest import KNN
from sigwire.dspy.tools import Tool
from sigwire.optimizers.rules.ensemble import majority

__all__ = [
    "KNN", "RLM", "BestOfN", "ChainOfThought", "CodeAct", "MultiChainComparison", "Parallel", "Predict",
    "ProgramOfThought", "ReAct", "ReActV2", "Refine", "Tool", "majority", "serialize_object",
]  # fmt: skip

add_paths(
    __name__,
    "aggregation best_of_n chain_of_thought code_act knn multi_chain_comparison parallel predict program_of_thought react "
    "react_v2 refine rlm",
)
