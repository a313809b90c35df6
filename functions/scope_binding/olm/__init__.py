"""OLM: ScopeTemplates and ScopeInstances made from OperatorGroups and ClusterServiceVersions (opt-in)."""
