"""Programs that ask more than once and choose.

best_of_n    BestOfN: the best of several runs by a reward
refine       Refine: each run gets advice from the run before
multi_chain  MultiChainComparison: one answer from several lines of reasoning
"""
