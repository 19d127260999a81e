"""sigwire: say what you want from a language model; the library takes care of how."""
