"""Adapters: a signature and inputs to a request, a response to typed fields. They hold no model and run no tool.

base         Adapter: options, and the way to a plan       plan         an adapter compiled for one signature and one model
layout       fields as text, what all layouts share        guards       values apart from the marks around them
chat json xml two_step                                     the adapters
demos        examples as messages                          history      past turns as messages     turns   one exchange
native_tools options for models with tools                 text_tools   tools as text for the others
values       a field's value, to text and back             json_text    JSON as models write it
shapes       types laid open, and values mended to fit     type_text    types as a prompt shows them
nested_tags  values from nested tags
"""
