"""Access locks: a consumer of Flux whose references are denied delivers nothing more, until they are allowed again.

Owners: ``consumer/<namespace>/<resource>.<group>:<name>``, and ``violations/default`` for the list of all that are denied.
"""
