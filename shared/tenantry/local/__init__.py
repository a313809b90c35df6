"""One machine instead of a cluster: control plane, source, broker, schedule and functions as processes.

All of it is driven by the very files in ``knative/`` and ``triggers/`` that a cluster uses.
"""
