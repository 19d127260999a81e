"""The engine of searches: it performs the effects of rules, stores runs, counts what is spent, and compares the winner."""
