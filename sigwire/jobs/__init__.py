"""Rows of data on many processes: chunks of rows go to any PEP 3148 executor as text, and records come back as text.

    driver  rows ─chunks─▶ executor.submit(run_chunk, job_text, chunk_text) ─▶ records
    worker  run_chunk: program, model and settings from the job; one event loop for the process; a journal line for each row

job      Job: what a worker needs, as JSON          paths    names of importable objects
worker   run_chunk                                  engine   the executor and its futures
driver   Driver: chunks, losses, quarantine         journal  files of rows that started, and of their records
errors   JobRefused

The room knows nothing of evaluation: a job names the runner of its rows (``sigwire.evaluate.mapping.row_runner``).
"""
