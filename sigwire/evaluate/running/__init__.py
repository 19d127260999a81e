"""An evaluation under way: options, its options, and run, which starts, keeps and stops the runs of examples."""
