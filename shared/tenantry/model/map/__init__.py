"""What stands in a cluster, from its lists: owners with their namespaces, rights, releases, scopes, locks, and what is wrong.

`seen` is what was read, `problems` finds what conditions tell and whom it concerns, `items` says in a few words what an object
is, `made` joins all into one `Map`, and `nodes` is its one shape: a tree.  `system` is what runs the functions.  All of it is
pure.  Which conditions are ours and which label says whose an object is comes from the descriptors (`Tells`, `OwnerMark`).
``tenantry status``, ``tree`` and ``map`` show it.
"""

from tenantry.model.map.made import Map, map_of
from tenantry.model.map.nodes import Node
from tenantry.model.map.problems import ToldProblem
from tenantry.model.map.seen import MapSeen

__all__ = ["Map", "MapSeen", "Node", "ToldProblem", "map_of"]
