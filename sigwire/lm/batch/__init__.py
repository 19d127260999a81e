"""Requests that wait for one another and travel in batches of the provider, at half the price.

model      ``BatchLM``, and the layer that keeps the width of a wave
backend    encodes a request, parks it, decodes its result: the HTTP backend with another transport
queue      parked requests of all threads and tasks, and the thread that sends and polls
driver     the decisions of that thread: when a batch is sent, what a status means, what is in doubt
outcome    the answers of an ended batch, its unsent lines and its lost ones
sending    the calls of one batch, and whether their failure leaves it in doubt
store      the file of lines and batches: what was sent survives the process
options    the options of ``BatchLM``, and its clock
executor   ``BatchExecutor``: the rows of ``map_rows`` in this process
waves      many programs at once on one event loop, with a count of those that wait
"""
