"""Shared by all wires: everything of a codec that does not depend on one wire."""
