"""The cards of canonical values. The classes name their builders as text (``HasLine``), and builders import the classes.

values    a value, media and money as lines of a card      records   examples, predictions, completions
messages  messages, requests, choices, responses, usage    tools     tools, their schemas and calls
runs      runs of agents, by the shape of their turns      examples  Examples, a list of examples with a card
reports   reports of calls, as trees
"""
