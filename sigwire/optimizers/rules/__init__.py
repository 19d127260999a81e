"""The rules of optimizers, one file each."""
