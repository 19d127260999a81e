"""The cache of responses, and the one exchange of equal calls at once.

keys            a request -> its key, pure
rows            the form of the file on disk, and the check of what is read from it
folder          the folder: place, owner, lock
store           answers on disk, for all processes
cache           answers in memory, the settings of the process, and the layer around a call
single_flight   equal calls at once: one asks, the others wait
"""
