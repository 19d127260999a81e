"""Modules whose model writes code: ``code_act``, ``program_of_thought``, ``rlm``; ``code_text`` finds the code in a reply."""
