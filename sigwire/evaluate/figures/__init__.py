"""The numbers of an evaluation.

scored_run   ScoredRun: records, and every figure that a result shows
stored_run   the last run of a file
tool_counts  calls of tools and warnings
exports      rows, CSV and JSON
run_card     the card of a run
"""
