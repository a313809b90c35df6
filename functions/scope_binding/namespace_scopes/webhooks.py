"""Webhooks of an operator that OLM runs, narrowed to the member namespaces of its NamespaceScope (3.11, N-15)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scope_binding.namespace_scopes.names import MANAGED_WEBHOOKS, OLM_OWNER, OLM_OWNER_KIND, ORIGINAL
from scope_binding.namespace_scopes.originals import keeping, record_of
from scope_binding.namespace_scopes.seen import Seen
from tenantry.model.kinds import (
    CLUSTER_SERVICE_VERSION,
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
    Object,
    annotations_of,
    labels_of,
)
from tenantry.model.names import NAMESPACE_NAME
from tenantry.model.plan import Edit, Write


def members(seen: Seen) -> tuple[str, ...] | None:
    """The namespaces that webhooks are narrowed to: the oldest injecting NamespaceScope's; None while nobody injects.

    Empty when none of the declared members can be served: then webhooks stay as they are.
    """
    scope = next((scope for scope in seen.live if scope.injects), None)
    if scope is None:
        return None
    served = any(name == seen.name or seen.is_member(name) for name in scope.members)
    return seen.validated(scope) if served else ()


def managed(seen: Seen) -> list[Object]:
    """The webhook configurations of the ClusterServiceVersions that ask for it."""
    asking = {csv["metadata"]["name"] for csv in seen.csvs if MANAGED_WEBHOOKS in annotations_of(csv)}
    return [
        found
        for found in seen.webhooks
        if labels_of(found).get(OLM_OWNER) in asking and labels_of(found).get(OLM_OWNER_KIND) == CLUSTER_SERVICE_VERSION.kind
    ]


def summary(seen: Seen) -> Object:
    """The parts of a NamespaceScope's status about webhooks."""
    names = sorted({found["metadata"]["name"] for found in managed(seen)})
    return {"managedWebhookList": names, "patchedWebhookList": names if members(seen) else []}


def writes(seen: Seen) -> Iterator[Write]:
    """Edits of webhook configurations, forth and back."""
    narrow = members(seen)
    asked = managed(seen)
    for found in seen.webhooks:
        chosen = narrow if found in asked else None
        edit = None if chosen == () else _edit(found, chosen)
        if edit is not None:
            yield edit


def _edit(found: Object, narrow: tuple[str, ...] | None) -> Edit | None:
    record = record_of(found)
    kept: dict[str, Any] = {}
    operations: list[Mapping[str, Any]] = []
    if narrow is None and ORIGINAL not in annotations_of(found):
        return None
    for number, webhook in enumerate(found.get("webhooks") or ()):
        live, name = webhook.get("namespaceSelector") or {}, webhook["name"]
        wanted = record.get(name, live)
        if narrow is not None:
            kept[name] = wanted
            wanted = live if _is_narrowed(live, narrow) else _selector(narrow)
        if wanted != live:
            operations.append({"op": "add", "path": f"/webhooks/{number}/namespaceSelector", "value": wanted})
    operations += keeping(found, kept)
    kind = VALIDATING_WEBHOOKS if found["kind"] == VALIDATING_WEBHOOKS.kind else MUTATING_WEBHOOKS
    return Edit(kind, found, tuple(operations)) if operations else None


def _selector(namespaces: tuple[str, ...]) -> Object:
    return {"matchExpressions": [{"key": NAMESPACE_NAME, "operator": "In", "values": list(namespaces)}]}


def _is_narrowed(selector: Object, namespaces: tuple[str, ...]) -> bool:
    """Whether a selector means exactly these namespaces, in any order."""
    expressions = selector.get("matchExpressions") or []
    if selector.get("matchLabels") or len(expressions) != 1:
        return False
    one = expressions[0]
    return (one.get("key"), one.get("operator"), set(one.get("values") or ())) == (NAMESPACE_NAME, "In", set(namespaces))
