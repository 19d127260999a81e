"""The cards of signatures and histories.

signatures  a signature class: instructions, a row for each field      types    a type as Python writes it
histories   a conversation: turns and messages, calls with results
"""
