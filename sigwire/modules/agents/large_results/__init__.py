"""Tool results that are too large for the context: shown in part, kept whole, and read by a tool.

shortening  the start and end of a text around a note       lookup  LargeResults: the kept texts, and the tool that reads them
"""
