"""Paas: its Groups, the RoleBindings in its namespaces, and the policy of its Argo CD."""
