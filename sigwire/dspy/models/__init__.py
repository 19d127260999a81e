"""Models of a user's own in DSPy's form: the methods that a subclass overrides, and their answers."""
