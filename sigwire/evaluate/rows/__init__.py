"""Rows of examples, run in this process or on the processes of an executor.

rows    rows as JSON, and what their records show        run     RowRun: runs rows for a caller
worker  RowRunner: the steps of a row in a worker        map_rows  map_rows, for rows that are drawn lazily
in_flight  RowsInFlight: an interrupt lets rows end      map_result  MapResult, the totals of map_rows
"""
