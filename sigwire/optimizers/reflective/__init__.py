"""Reflection: what failing runs show about texts and tools, rewriting them, and the search over what was rewritten."""
