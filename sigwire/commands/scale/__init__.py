"""The verbs of runs over many rows.

coordinator  the limits of all workers, as a process of its own    batch  the provider's batches of a store
"""
