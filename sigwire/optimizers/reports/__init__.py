"""Reports of searches: their data and cards, plots, and word diffs of texts."""
