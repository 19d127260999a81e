"""The parts of a module, which are modules, predictors and values in its attributes.

walk     paths and names of the parts      copying  copies: structure is copied, resources are shared
saving   state as one JSON object, and back
"""
