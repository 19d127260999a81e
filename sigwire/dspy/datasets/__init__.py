"""The names of ``dspy.datasets``: ``Dataset``, ``DataLoader``, and the data sets of DSPy's tutorials, GSM8K and MATH."""

from __future__ import annotations

from sigwire.dspy.datasets import gsm8k
from sigwire.dspy.datasets.dataloader import DataLoader
from sigwire.dspy.datasets.dataset import Dataset
from sigwire.dspy.datasets.gsm8k import GSM8K
from sigwire.dspy.datasets.math import MATH

__all__ = ["GSM8K", "MATH", "DataLoader", "Dataset", "gsm8k"]
