"""Reports as files: one self-contained page of HTML, and Inspect's log.

page         ReportPage and its file           run_page, comparison_page   the pages of one run and of several
summary      figures as HTML without a script  charts                      plots as SVG
inspect_log  a run as a log of Inspect
"""
