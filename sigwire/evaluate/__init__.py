"""Evaluation: run a program on examples, score its outputs, and report what the numbers are worth.

scores       Score, the value of a metric              metric_plan  MetricPlan: how a metric is called
failures     Failure, and the table of kinds           cell         Cell: one run of a program on one example
examples     ids and checks of a devset                evaluation   Evaluate
records      the file of records, and resuming         statistics   intervals, paired tests, corrections
result       EvaluationResult                          comparison   Comparison of programs on the same examples
cards        text and HTML of results                  progress     terminal, log and notebook
figures      numbers of a run, its exports             metrics      the metrics and judges of the library
"""
