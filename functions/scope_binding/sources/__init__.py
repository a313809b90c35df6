"""Who may use which source of Flux: the AccessIndex, and what is told of its carriers (1.5, 3.6, 3.7).

Owners: ``index/default``, the one index; ``access/<namespace>``, what is told of the sources and SourceGrants of a namespace.
"""
