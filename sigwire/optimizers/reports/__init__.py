"""Reports of searches.

report        OptimizationReport, its estimate and trials    plots      scores, costs and rows as SVG
programs      the candidates as programs, made on access     text_diff  word by word
search_page   the page of a report                           prompts    demos as the model reads them
front         the candidates that none beats in all objectives
"""
