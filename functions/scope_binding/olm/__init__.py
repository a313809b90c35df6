"""OLM: ScopeTemplates and ScopeInstances made from OperatorGroups and ClusterServiceVersions (opt-in)."""

from scope_binding.olm.unit import Olm

__all__ = ["Olm"]
