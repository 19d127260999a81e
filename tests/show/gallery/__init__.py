"""The gallery: every shown class with normal, long, empty and hostile values, on one page. No other module imports it.

    python -m tests.show.gallery gallery.html

material  the values of which specimens are made      values    specimens of core and signatures
programs  specimens of modules and runs               searches  specimens of evaluations and searches
page      all of them, and the page
"""
