"""Values: between a field's typed value and its text or JSON. Knows types and JSON; no prompts, tools or models.

codecs       one field, to text and back           objects      several fields in one JSON object
typed_json   validation and repairs of one type    type_shape   a type's validator and JSON Schema
fitting      a JSON value changed to fit a schema  type_text    types as prompts show them
json_text    JSON as models write it               media_json   JSON around images, audio and files
nested_tags  values from nested tags               edges        blanks at the ends of a text
criteria_text  criteria in prompts and schemas      json_places  where values stand in a JSON text
output_schema  the JSON Schema of all outputs
lead_in      polite lines and an opening fence in front of the outputs
"""
