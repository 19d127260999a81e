"""The floor of everything on disk. Knows no store: each room has its own errors and words.

lock       lock_file, HeldFile: locks that the kernel frees with the process; the only ``fcntl``
database   Form, Database, OtherForm, trouble_of, make_private: one connection a process; the only ``sqlite3.connect``
lines      LineFile, read_lines: files of JSON lines that one writer appends to
spool      Spool: JSON values by key in a temporary file
whole      write_whole, replacing, FULL_DISK: files that are written whole
packing    deflate, inflate: compressed bytes, and the bound of what is inflated

A forked child inherits no lock and no connection from here: see ``sigwire/effects/forks.py``.
"""
