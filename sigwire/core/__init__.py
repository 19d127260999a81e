"""Canonical values: the data that every layer of sigwire passes to the next. Frozen, and lossless to and from JSON.

json          JsonValue; Value: the base with to_json, from_json    parts     text, image, audio, file, thinking, opaque
messages      Message: a role and its parts                         tools     Tool, ToolCall, ToolResult, ToolChoice
request       Request, ResponseFormat                               response  Response, Choice, Usage, LMWarning, Attempt
events        the events of streams, and collect()                  schema    JSON Schema: from Python types, validators
capabilities  the abilities of a model, as data                     example   Example, Prediction: the records users hold
record        Record, their base                                    cards     the builders of their cards, named as text
report        CallReport: how a result was made, as a tree   fold      Fold: the turns that a request leaves out
lazy          names of a package that load on first use             narrow    type guards for untyped data
foreign_names  names of another library in files             set_order     a stable order of sets in JSON
typed_dict  ``typing.TypedDict`` on Python 3.11             paths         paths of parts, the marker of parts
bytecode    what the code of a function does, and what it uses   evidence  distributions of outputs, and deciding rules
words       WordIndex: texts ranked by their words
"""
