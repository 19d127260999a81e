"""Parts of the optimizers of the door."""
