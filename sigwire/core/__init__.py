"""Canonical values: what every layer of sigwire passes to the next. Frozen, and JSON in and out without loss.

json          JsonValue, and Value: the base that gives a dataclass to_json / from_json
parts         text, image, audio, file, thinking, opaque   messages  Message: a role and its parts, calls and results too
tools         Tool, ToolCall, ToolCalls, ToolResult      function_tools  a Tool from a Python function
schema        JSON Schema: from Python types, validators  names           tool names that a wire forbids, both ways
request       Request, ToolChoice, ResponseFormat         response        Response, Choice, Usage, LMWarning, Attempt
events        a response in pieces; collect() puts it together    late    names that a package loads when first used
capabilities  what a model can do, as data                example         Example, Prediction: the records users hold
"""
