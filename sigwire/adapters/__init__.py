"""Adapters: a signature and inputs to a request, a response to typed fields. They hold no model and run no tool.

base          Adapter: options, cached plans              plan          an adapter compiled for a signature and a model
options       the options that plans see                  plan_parts    the setup of a plan, and its writers
finish        finish reasons, before parsing
chat json xml two_step                                    the adapters
prompts       fields, demos, turns and tools as messages  values        a field's value, to text and back
text_tools    calls and results written as text           streaming     fields of an answer while it streams
field_events  the events of one choice's fields           decisions     the layout for models that decide only
evidence      distributions in an answer
"""
