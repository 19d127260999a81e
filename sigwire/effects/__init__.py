"""Steps, the effects that they yield, and the drivers that perform those effects. Knows nothing of models.

steps         Effect, Steps, run, arun             emitting    events of steps: Emit, stream, astream
loops         block_on, to_thread, OwnerLoop       gather      several steps at once
cancellation  CancelScope                          relaying    steps whose events are changed on their way
performing    effects performed in another way     threads     run_in_threads: workers on one queue
forks         what a fork does to live state       daemon_pool  DaemonPool: threads that never hold the exit
network       check_network: a replay sends nothing            waiting      blocking waits, in slices
inbox         Inbox: a queue between threads                  collecting   what begins inside a call, in order
time_limit    a call for at most some seconds
"""
