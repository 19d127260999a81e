"""The names of ``dspy.datasets``: ``Dataset``, ``DataLoader``, and the data sets of DSPy's tutorials.

dataset     Dataset, the base: rows of training, development, test
dataloader  DataLoader: files, data sets of Hugging Face
gsm8k       GSM8K in DSPy's parts, and its metric
hotpotqa    HotPotQA: hard questions about two pages of Wikipedia
math        MATH: one subject, and its metric
"""

from __future__ import annotations

from sigwire.dspy.datasets import gsm8k
from sigwire.dspy.datasets.dataloader import DataLoader
from sigwire.dspy.datasets.dataset import Dataset
from sigwire.dspy.datasets.gsm8k import GSM8K
from sigwire.dspy.datasets.hotpotqa import HotPotQA
from sigwire.dspy.datasets.math import MATH
from sigwire.dspy.missing import advise

__all__ = ["GSM8K", "MATH", "DataLoader", "Dataset", "HotPotQA", "gsm8k"]

advise(__name__)
