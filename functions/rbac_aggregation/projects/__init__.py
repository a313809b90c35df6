"""Releases of projects: each labelled Role in a release namespace is bound to the people of the registration namespace.

Owners: ``release/<namespace>/<name>`` for the bindings of one release in one namespace.
"""
