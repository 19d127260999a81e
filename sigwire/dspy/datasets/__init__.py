"""The names of ``dspy.datasets``: ``Dataset``, ``DataLoader``, and the data sets of DSPy's tutorials.

dataset  Dataset, the base: rows of training, development, test   dataloader  DataLoader: files, data sets of Hugging Face
gsm8k    GSM8K in DSPy's parts, and its metric                    math        MATH: one subject, and its metric
"""

from __future__ import annotations

from sigwire.dspy.datasets import gsm8k
from sigwire.dspy.datasets.dataloader import DataLoader
from sigwire.dspy.datasets.dataset import Dataset
from sigwire.dspy.datasets.gsm8k import GSM8K
from sigwire.dspy.datasets.math import MATH

__all__ = ["GSM8K", "MATH", "DataLoader", "Dataset", "gsm8k"]
