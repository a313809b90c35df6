"""Which sources of other namespaces a namespace may use, as a ConfigMap in it, for those that ask for one (2.8).

Owner: ``shown/<namespace>``.
"""
