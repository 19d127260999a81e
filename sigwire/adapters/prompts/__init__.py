"""Prompts: what a plan writes into messages. Imports values and text_tools; knows no adapter and no plan.

layout       fields as text, both ways             escaping     marks inside values
demos        demos as messages                     history      past turns as messages
turns        one turn as messages                  tool_prompt  offered tools: specs, system text, reminder
excerpts     a failed answer, shortened before it is sent back
"""
