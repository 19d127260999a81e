"""Whole programs as JSON files: classes and functions by the names of a registry, constructor arguments, and state.

files           save_program, load_program
encoding        programs to JSON                library          the registered classes of sigwire
decoding        JSON to programs                signature_json   signatures and types
"""
