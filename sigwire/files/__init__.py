"""The floor of everything on disk: locks, databases, packed bytes. Knows no store; each store has its own errors and words.

lock       lock_file, HeldFile: locks that the kernel frees with the process; the only ``fcntl``
database   Form, Database, OtherForm, make_private: one connection a process; the only ``sqlite3.connect``
packing    deflate, inflate: compressed bytes, and the bound of what is inflated

A forked child inherits no lock and no connection from here: see ``sigwire/effects/forks.py``.
"""
