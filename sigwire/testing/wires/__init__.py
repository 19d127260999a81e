"""The wires of the fake provider: one file per wire, one per stream; clouds and compatible hosts serve variants."""
