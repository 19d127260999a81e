"""The parts of the door's adapters that write prompts.

formats   types that write themselves          shown_tools  tools as an input to read
thinking  outputs that ask for reasoning       turns        past turns without calls that have no result
asking    one call of an adapter by itself     hooked_plan  plans by the methods that a user overrides
"""
