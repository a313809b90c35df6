"""Names, labels and annotations of NamespaceScopes: those of the IBM operator, and ours under ``scope-binding/``."""

from __future__ import annotations

import hashlib
import re

from tenantry.model.names import GIVEN_FROM, INJECTION_ORIGINAL, NAMESPACE_LIST, NAMESPACE_SCOPE_FINALIZER, field_manager

FUNCTION = "scope-binding"
MANAGER = field_manager(FUNCTION)

FINALIZER = NAMESPACE_SCOPE_FINALIZER
HELM_LABEL = "cpfs.helm/install"
"""Label ``true`` on a NamespaceScope that must not get the finalizer."""
LIST_LABEL = NAMESPACE_LIST
LIST_KEY = "namespaces"
OWNERSHIP_LABEL = "namespace-scope-configmap"
FROM_LABEL = GIVEN_FROM
ACCOUNT_LABEL = "scope-binding/service-account"

PROJECTION = "scope-binding/projection"
"""Annotation on a NamespaceScope: ``managed`` or ``own-roles`` in place of what is configured."""
HASH = "scope-binding/namespaces-hash"
"""Annotation on the ConfigMap: which value the workloads were last restarted for."""
PENDING = "scope-binding/restart-pending"
"""Annotation on the ConfigMap while workloads are to be restarted."""
NO_RESTART = "scope-binding/no-restart"
"""Annotation ``true`` on a pod template: the program reads the list again by itself."""
TEMPLATE_HASH = "nss.ibm.com/namespaceList"
OLM_GROUP = "olm.operatorGroup"
"""Annotation on pods that OLM runs: their workload cannot be annotated, since OLM would take it back."""

MANAGED_PREFIX = "namespacescope-managed-role-from-"
RUNTIME_PREFIX = "nss-runtime-managed-role-from-"

MANAGED_OPERATORS = "nss.operator.ibm.com/managed-operators"
MANAGED_WEBHOOKS = "nss.operator.ibm.com/managed-webhooks"
ORIGINAL = INJECTION_ORIGINAL
OLM_OWNER, OLM_OWNER_KIND = "olm.owner", "olm.owner.kind"

LABEL_LIMIT = 63


def label_value(text: str) -> str:
    """A text as a valid label value: cut, and without punctuation at the end (N-7)."""
    return re.sub(r"[^A-Za-z0-9]+$", "", text[:LABEL_LIMIT])


def value_hash(value: str) -> str:
    """The hash of a text in 14 digits: of a ConfigMap's value it is written on pod templates (3.8)."""
    return hashlib.sha256(value.encode()).hexdigest()[:14]


def own_role_name(role: str, account: str, from_namespace: str) -> str:
    """The name of the copy of an account's Role in a member (3.4)."""
    return f"{role.partition('.')[0]}-{value_hash(f'{role}{account}{from_namespace}')}"


def managed_role_name(scope: str, from_namespace: str, *, shared: bool) -> str:
    """The name of the one Role of a NamespaceScope in a member.

    With ``shared`` NamespaceScopes of the same name in other namespaces have the same member: then each Role's
    name has a hash of its from namespace as well.
    """
    return f"{MANAGED_PREFIX}{scope}" + (f"-{value_hash(from_namespace)[:10]}" if shared else "")


def runtime_role_name(from_namespace: str) -> str:
    """The name of the Role that sums up what was given in a member (3.10)."""
    return f"{RUNTIME_PREFIX}{from_namespace}"


def may_be_ours(name: str) -> bool:
    """Whether something that is put into members can have this name."""
    return name.startswith((MANAGED_PREFIX, RUNTIME_PREFIX)) or re.search(r"-[0-9a-f]{14}$", name) is not None


def ownership_labels(config_map: str, from_namespace: str) -> dict[str, str]:
    """The labels of everything that is made in members (3.4, N-7)."""
    return {
        OWNERSHIP_LABEL: label_value(f"{config_map}-{from_namespace}"),
        "app.kubernetes.io/instance": "namespace-scope",
        "app.kubernetes.io/managed-by": "ibm-namespace-scope-operator",
        "app.kubernetes.io/name": label_value(config_map),
        FROM_LABEL: from_namespace,
    }
