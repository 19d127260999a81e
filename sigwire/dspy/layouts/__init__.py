"""The parts of the door's adapters that write prompts."""
