"""Labels, annotations, prefixes and limits, each with its owner and meaning.

The ``helm.cattle.io`` names are those of the Helm Project Operator, so that charts, dashboards and people
who know them find what they expect; the ``tenantry.dev`` ones are ours.
"""

from __future__ import annotations

OPERATED = "helm.cattle.io/helm-project-operated"
"""Label ``true`` on everything that Tenantry makes for projects."""

PROJECT_ID = "helm.cattle.io/projectId"
"""Label on registration, release and member namespaces: the project; on members the memory of the last one."""

ORPHANED = "helm.cattle.io/helm-project-operator-orphaned"
"""Label ``true`` on a registration or release namespace that may be deleted."""

ADOPT = "tenantry.dev/adopt"
"""Annotation ``true`` with which an administrator lets Tenantry take over an existing namespace."""

REGISTERED_CONDITION = "tenantry.dev/Registered"
"""Condition on a Namespace that says why its project is not served; absent when all is well."""

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""Label that the API server puts on every namespace; who creates one owns it, so it is part of what we want."""

SYSTEM_NAMESPACE = "tenantry-system"
"""Where the functions and their ServiceAccounts live."""

REGISTRATION_PREFIX = "cattle-project-"
HARDENING_POLICY = "hpo-generated-default"
DEFAULT_SERVICE_ACCOUNT = "default"

NAMESPACE_NAME_LIMIT = 63  # RFC 1123 label
PROJECT_ID_LIMIT = NAMESPACE_NAME_LIMIT - len(REGISTRATION_PREFIX)


def field_manager(function: str) -> str:
    """The field manager of a function."""
    return f"tenantry-{function}"
