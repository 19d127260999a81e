"""Evaluation: run a program on examples, score its outputs, and report what the numbers are worth.

scores      Score, the value of a metric              metric_plan  MetricPlan: how a metric is called
failures    Failure, and the table of kinds           cell         Cell: one run of a program on one example
examples    ids and checks of a devset                evaluation   Evaluate
running     an evaluation under way                   records      the file of records, and resuming
statistics  intervals, paired tests, corrections      quantiles    of the normal and of Student's t distribution
result      EvaluationResult                          comparison   Comparison of programs on the same examples
figures     numbers of a run, its exports             reports      the pages of results, the log of Inspect
progress    counts of an evaluation                   plain        any value as JSON
reporters   progress in terminal, log and notebook
fingerprint  what a result depends on, by content
metrics     the metrics and judges of the library     git          the commit, for records
segments    parts of a run that was resumed           costs        sums of which a part may be unknown
calls       the messages of a row, for its record    calibration  probabilities of outputs against labels
rows        rows in this process or on an executor, and map_rows
seeds       means and differences over examples and seeds
pareto      the front of entries that are measured by several numbers
"""

from __future__ import annotations

from collections.abc import Mapping

MOVED: Mapping[str, str] = {"mapping.row_runner:RowRunner": "rows.worker:RowRunner"}
"""The paths in this package that stored jobs name, and those of today; ``load_path`` reads it."""
