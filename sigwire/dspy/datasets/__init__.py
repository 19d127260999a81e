"""The names of ``dspy.datasets`` that need no download: ``Dataset``, ``DataLoader`` and the metric of GSM8K."""

from __future__ import annotations

from sigwire.dspy.datasets import gsm8k
from sigwire.dspy.datasets.dataloader import DataLoader
from sigwire.dspy.datasets.dataset import Dataset

__all__ = ["DataLoader", "Dataset", "gsm8k"]
