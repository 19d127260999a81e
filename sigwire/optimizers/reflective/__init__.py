"""Reflection: what failing runs show about texts and tools, and the searches over what was rewritten.

evolution    the search of GEPA                  reflection   runs as records: which step is to blame
ascent       the search of SIMBA                 tool_tuning  how tools are used, and their new texts
rewriting    new texts from runs                 writing      the requests to the writing model
pareto       fronts of candidates, merges        items        instructions as a base and items
gepa_result  the report in the form of gepa      tool_options  new texts of tools as options of a search
"""
