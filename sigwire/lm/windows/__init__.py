"""Context windows of servers that cut a prompt silently: a warning before the call, and one after it by the counted tokens."""
