"""What NamespaceScopes read twice before they take something away."""

from __future__ import annotations

from typing import Any

import owning
import pytest
from served import Served

from scope_binding.consent import consent_objects
from scope_binding.namespace_scopes.names import FROM_LABEL, MANAGER, managed_role_name, ownership_labels
from scope_binding.namespace_scopes.observe import observe
from scope_binding.namespace_scopes.register import RegisterCache
from scope_binding.namespace_scopes.unit import NamespaceScopes
from tenantry.api import Listing
from tenantry.api.errors import KindNotServed
from tenantry.model.config import Config, NamespaceScopeSettings
from tenantry.model.kinds import (
    CLUSTER_SERVICE_VERSION,
    NAMESPACE,
    NAMESPACE_SCOPE,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    Key,
    Kind,
    Object,
    key_of,
    object_of,
)
from tenantry.model.plan import Delete

NAME = managed_role_name("s", "ops", shared=False)
ENTRY = {"manager": MANAGER, "operation": "Apply", "fieldsV1": {}}


def scope() -> Object:
    """A NamespaceScope of ``ops`` with the member ``t1`` and the account ``op``."""
    metadata = {"name": "s", "namespace": "ops", "uid": "s", "creationTimestamp": "2026-01-01T00:00:00Z"}
    spec = {"namespaceMembers": ["t1"], "serviceAccountMembers": ["op"]}
    return object_of(NAMESPACE_SCOPE, metadata, spec=spec)


def given(kind: Kind) -> Object:
    labels = ownership_labels("namespace-scope", "ops")
    metadata = {"name": NAME, "namespace": "t1", "labels": labels, "managedFields": [ENTRY]}
    return object_of(kind, metadata, roleRef={"apiGroup": ROLE.group, "kind": ROLE.kind, "name": NAME})


class Server(Served):
    """A NamespaceScope that is served; one read of something that is missing, or is not, does not find it."""

    def __init__(self, missing: str, *, there: bool, read: int = 1) -> None:
        objects = [scope(), given(ROLE), given(ROLE_BINDING), *consent_objects("t1", "ops")]
        objects += [object_of(NAMESPACE, {"name": name}) for name in ("ops", "t1")]
        objects.append(object_of(SERVICE_ACCOUNT, {"name": "op", "namespace": "ops"}))
        for number, obj in enumerate(objects):
            obj["metadata"] |= {"uid": str(number), "resourceVersion": "1"}
        super().__init__(*objects)
        (self.missing,) = (key for key in self.objects if f"{key.kind} {key.name}" == missing)
        self.there = there
        self.read = read
        self.reads = 0

    def found(self, key: Key) -> Object | None:
        if key == self.missing:
            self.reads += 1
            if not self.there or self.reads == self.read:
                return None
        return super().found(key)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize(
    "missing",
    [f"{NAMESPACE.kind} ops", f"{NAMESPACE.kind} t1", f"{ROLE.kind} nss-managed-role-from-ops", f"{SERVICE_ACCOUNT.kind} op"],
)
async def test_what_seems_to_be_missing_is_looked_for_twice_before_rights_go(missing: str, there: bool) -> None:
    """Rights outlive one read that does not find home, member, consent or account; when it is gone so are they."""
    server = Server(missing, there=there)
    decided = await owning.decided(NamespaceScopes(Config()), "namespace/ops", server.reader())
    deleted = {write.key.name for write in decided.plan.writes() if isinstance(write, Delete)}
    assert server.reads == 2
    assert deleted == (set() if there else {NAME})


class WithoutOlm(Server):
    """A NamespaceScope that injects, where OLM's kind is not served; discovery says so too or does not."""

    def __init__(self, *, known: bool) -> None:
        super().__init__(f"{NAMESPACE.kind} t1", there=True, read=0)
        self.known = known
        next(obj for key, obj in self.objects.items() if key.kind == NAMESPACE_SCOPE.kind)["spec"]["csvInjector"] = {}

    async def list(self, kind: Kind, namespace: str = "", **options: Any) -> Listing:
        if kind == CLUSTER_SERVICE_VERSION:
            raise KindNotServed("page not found", status=404)
        return await super().list(kind, namespace, **options)

    async def served(self, api_version: str, kind: str, *, again: bool = False) -> Kind | None:
        assert again
        return CLUSTER_SERVICE_VERSION if self.known else None


async def test_operators_are_gone_when_discovery_says_so() -> None:
    """One answer that OLM's kind is not served ends no injection: the run fails and is tried again."""
    settings, registers = NamespaceScopeSettings(), RegisterCache("managed")
    with pytest.raises(KindNotServed):
        await observe("ops", settings, WithoutOlm(known=True).reader(), {}, registers)
    found = await observe("ops", settings, WithoutOlm(known=False).reader(), {}, registers)
    assert found.csvs == ()


@pytest.mark.parametrize("read", [1, 2])
async def test_only_what_two_looks_agree_on_goes(read: int) -> None:
    """Something is to go, and one of the looks, the first or the second, does not find the member."""
    server = Server(f"{NAMESPACE.kind} t1", there=True, read=read)
    extra = given(ROLE)
    extra["metadata"] |= {"name": managed_role_name("gone", "ops", shared=False), "uid": "x", "resourceVersion": "1"}
    server.objects[key_of(extra)] = extra
    decided = await owning.decided(NamespaceScopes(Config()), "namespace/ops", server.reader())
    deleted = {write.key.name for write in decided.plan.writes() if isinstance(write, Delete)}
    assert deleted == {extra["metadata"]["name"]}


async def test_who_may_want_a_right_looks_before_who_its_label_names() -> None:
    """A label that somebody changed is put right by who gave the right, before it is a leftover of the one that it names."""
    server = Server(f"{NAMESPACE.kind} t1", there=True, read=0)
    key = key_of(given(ROLE_BINDING))
    for said, stages in (("drifted", [["namespace/ops"], ["namespace/drifted"]]), ("ops", [["namespace/ops"]])):
        assert await owning.owners(NamespaceScopes(Config()), key, {FROM_LABEL: said}, server.reader()) == stages
