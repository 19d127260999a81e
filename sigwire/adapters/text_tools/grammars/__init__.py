"""grammars."""
