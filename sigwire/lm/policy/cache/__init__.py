"""The cache of responses, and the one exchange of equal calls at once.

choice          the options of a call for the cache, and whether the process has one
keys            a request -> its key, pure
answers         which answers are stored, and in which JSON, pure
rows, folder    the form of the file on disk, and its place; what is read is checked
store, memory   answers on disk, for all processes, and in memory
cache           the cache of the process and its settings
single_flight   equal calls at once: one asks, the others wait
layer           the layer around a call
loading         its layers, loaded by the first call that uses the cache
"""
