"""The dialects of calls, grouped by their notation of arguments. ``registry`` has the table.

fenced_json                         the taught form
tagged_json, named_json, deepseek   JSON behind a marker; a name, a marker, JSON
tagged_values, parameter_text       a tag for each argument; its text typed by the schema
pythonic, literals, gemma           Python's notation and Gemma's, and the reader of literals
harmony, output_section             messages of gpt-oss; a section of the answer
bare_json                           forms without a marker
"""
