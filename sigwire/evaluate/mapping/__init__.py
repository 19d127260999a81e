"""Evaluations on many processes.

rows        rows of examples, and what their records show      row_runner  RowRunner: the steps of a row in a worker
map_rows    map_rows, for rows that are drawn lazily
"""
