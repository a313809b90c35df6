"""Typed views of what we read and write: kinds, keys, names, labels, conditions, plans, configuration.

Pure values and pure functions.  Nothing in this package does I/O, looks at a clock or draws a random
number, so that everything built on it can be planned, printed and tested without a cluster.
"""
