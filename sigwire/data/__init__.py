"""Data sets: ``reading`` (files and data sets to examples), ``splitting`` (seeded parts, duplicates and leakage)."""
