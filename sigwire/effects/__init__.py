"""Steps, the effects that they yield, and the drivers that perform those effects. Knows nothing of models."""
