"""The limiter: when an exchange may go.

limit     Limit and LimitState, the public values     limiter   the layer: queue, slots, pace and buckets of one target
pace      the controls, pure                          queue     tickets in the order in which they are served
headers   the allowance that a reply states, pure     buckets   stated and mirrored allowances
registry  the limiters of the process                 runs      the mark of calls of a batch
alarm     the thread that wakes limiters
"""
