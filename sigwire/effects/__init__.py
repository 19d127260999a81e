"""Steps, the effects that they yield, and the drivers that perform those effects. Knows nothing of models.

steps     Effect, Steps, run, arun           emitting  events of steps: Emit, stream, astream
loops     block_on, to_thread, OwnerLoop     gather    several steps at once, in `threads`   cancellation  CancelScope
"""
