"""Money: prices of models, and budgets that limit what a program spends.

prices     Price, the user's table of prices, and the cost of an exchange
catalogs   price tables of other packages: genai-prices, LiteLLM
estimates  upper bounds of a request's tokens, and the tokens of an exchange that failed
sums       calls, tokens and money as integers
ledger     what is spent and reserved
store      the ledger in an SQLite file, which several processes share
queue      reservations in all open budgets at once, and the queue of calls that wait for one
budget     Budget
opened     the budgets that are open in a context; loads none of the others
reserve    the layers: reserve before an exchange and settle after it; price an exchange
leases     the layer that takes a permit of a coordinator for each exchange; which layers a call has
"""
