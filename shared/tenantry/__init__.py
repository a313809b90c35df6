"""Tenantry: Kubernetes multi-tenancy as small, stateless event functions.

The core library.  Its layers, from low to high, are ``model`` (typed views, names, labels,
conditions), ``api`` (the only place that talks to the API server), ``engine`` (event to verdict),
``serving`` (the HTTP entry of every function), ``local`` (control plane, source, broker and schedule
for one machine), ``testing`` (the kit) and ``cli``.  A layer imports only what is below it; the
contracts in ``pyproject.toml`` hold it to that.
"""

__version__ = "0.1.0"
