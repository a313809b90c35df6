"""NamespaceScopes: what members get, drift, the end, and the examples (sb-47, 49 to 52, 54 to 56, 65 to 67, 77 to 79)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import yaml
from flawless import Calm
from operators import FINALIZER, GET_LIST, LIST, OWN_ROLES, Operators, chosen, name_of, template, workload
from people import People
from times import NAMESPACE_GONE_S, SCOPES_S

from scope_binding.consent import VERBS
from tenantry.api import Api
from tenantry.api.errors import AlreadyExists
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import CONFIG_MAP, DEPLOYMENT, NAMESPACE, NAMESPACE_SCOPE, ROLE, ROLE_BINDING, labels_of
from tenantry.testing import eventually
from tenantry.testing.awaiting import deadline

MY_OP = "my-op-e756cda126bb30"
LEADER = "leader-d9bb891cabf984"
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": sorted(VERBS)}
EXAMPLES = {
    "common-service": """
apiVersion: operator.ibm.com/v1
kind: NamespaceScope
metadata:
  name: common-service
spec:
  # Namespaces that are part of this scope
  namespaceMembers:
  - cp4i
  - default
  # ConfigMap name that will contain the list of namespaces to be watched
  configmapName: namespace-scope
  # Restart pods with the following labels when the namespace list changes
  restartLabels:
    intent: projected
  # Automatically inject the configmap into the ClusterServiceVersion
  csvInjector:
    enable: true
""",
    "my-operator": """
apiVersion: operator.ibm.com/v1
kind: NamespaceScope
metadata:
  name: my-operator
  namespace: my-operators
spec:
  namespaceMembers:
  - my-operand-tenant1
  - my-operand-tenant1
  configmapName: namespace-scope
  restartLabels:
    intent: projected
  csvInjector:
    enable: true
""",
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def ops(scopes: Knative, admin: Api) -> AsyncIterator[Operators]:
    """The setting of the checks under its literal names: ``ops``, ``tenant1``, ``tenant2``."""
    found = Operators(admin, home="ops", prefix="-")
    await found.begin()
    yield found


@pytest.mark.check("sb-47")
@pytest.mark.check("sb-49")
@pytest.mark.check("sb-50")
@pytest.mark.check("sb-51")
async def test_list_rights_and_finalizer(ops: Operators) -> None:
    """A NamespaceScope makes the list, gives the accounts their own rights in the member, and gets its finalizer."""
    await ops.scope("ops", 1, annotations=OWN_ROLES)
    scope = await ops.ready()
    config_map = await ops.listed(1)

    assert labels_of(config_map)["managedby-namespace-scope"] == "true"
    assert config_map["metadata"]["ownerReferences"] == [
        {"apiVersion": "operator.ibm.com/v1", "kind": "NamespaceScope", "name": "common-service", "uid": scope["metadata"]["uid"]}
    ]
    role, binding = await ops.given(1, MY_OP)
    assert role["rules"] == [GET_LIST]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "my-op", "namespace": "ops"}]
    assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": MY_OP}
    assert all(labels_of(each)["namespace-scope-configmap"] == "namespace-scope-ops" for each in (role, binding))
    assert await ops.may(1, "list", "configmaps")
    assert not await ops.may(1, "create", "pods")
    assert FINALIZER in scope["metadata"]["finalizers"]
    assert scope["status"]["validatedMembers"] == ["ops", "tenant1"]


@pytest.mark.check("sb-54")
@pytest.mark.check("sb-55")
@pytest.mark.check("sb-56")
async def test_member_joins_and_leaves(ops: Operators, people: People, projection: str) -> None:
    """A further member gets its rights, the list grows and the operator restarts for it; leaving undoes all of it."""
    await ops.scope("ops", 1, annotations=chosen(projection))
    await ops.listed(1)
    await ops.scope("ops", 1, 2, annotations=chosen(projection))
    role, binding = await ops.given(2, name_of(ops, projection))
    assert role["rules"] == [EVERYTHING if projection == "managed" else GET_LIST]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "my-op", "namespace": "ops"}]
    await ops.listed(1, 2)
    assert await ops.restarted_for() == "224f96eafebffc"
    summary = await people.get(ROLE, "nss-runtime-managed-role-from-ops", "tenant2")
    assert summary["rules"] == role["rules"]
    assert await ops.admin.get(ROLE_BINDING, summary["metadata"]["name"], "tenant2") is None

    await people.edit(CONFIG_MAP, LIST, "ops", ("replace", "/data/namespaces", "ops,tenant1"))
    await ops.scope("ops", 1, annotations=chosen(projection))
    await ops.emptied(2)
    await ops.listed(1)
    assert await ops.restarted_for() == "6c47594befb397"
    assert await ops.admin.get(ROLE, "nss-runtime-managed-role-from-ops", "tenant2") is None


@pytest.mark.one_variant("projection")
@pytest.mark.check("sb-77")
async def test_summary_of_what_is_given_in_a_member(
    ops: Operators, people: People, projection: str, scopes: Knative, calm: Calm
) -> None:
    """What is given in a member is summed up in one Role, bound to nobody; it follows, and goes when the member leaves."""
    place = "nss-runtime-managed-role-from-ops", "tenant1"
    await ops.scope("ops", 1, annotations=chosen(projection))
    with deadline(SCOPES_S):
        role, _ = await ops.given(1, name_of(ops, projection))
        rules = [EVERYTHING] if projection == "managed" else [GET_LIST]
        summary = await ops.people.until(ROLE, *place, lambda found: found["rules"] == rules)
    assert role["rules"] == rules
    assert labels_of(summary)["namespace-scope-configmap"] == "namespace-scope-ops"

    more = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "update"]}
    await ops.right("more", "my-op", [more])
    if projection == "own-roles":
        await ops.people.until(ROLE, *place, lambda found: found["rules"] == [GET_LIST, more])
    await ops.admin.delete(ROLE_BINDING, "more", "ops")
    await ops.people.until(ROLE, *place, lambda found: found["rules"] == rules)
    await calm(scopes)
    assert (await people.get(ROLE, *place))["rules"] == rules
    bindings = (await ops.admin.list(ROLE_BINDING, "tenant1")).items
    assert not [each for each in bindings if each["roleRef"]["name"] == place[0]]

    await ops.scope("ops", 2, annotations=chosen(projection))
    await ops.people.away(ROLE, *place)
    await calm(scopes)
    assert await ops.admin.get(ROLE, *place) is None


@pytest.mark.check("sb-65")
@pytest.mark.check("sb-66")
async def test_new_right_of_an_account_follows(ops: Operators) -> None:
    """What an account may do at home changes: the members follow."""
    await ops.scope(1, annotations=OWN_ROLES)
    await ops.given(1, MY_OP)
    await ops.right(
        "leader", "my-op", [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "update"]}]
    )
    await ops.given(1, LEADER)
    await ops.admin.delete(ROLE_BINDING, "leader", "ops")
    await ops.people.away(ROLE_BINDING, LEADER, "tenant1")
    await ops.people.away(ROLE, LEADER, "tenant1")
    assert await ops.may(1, "list", "configmaps")


@pytest.mark.check("sb-67")
@pytest.mark.parametrize("drift", ["subjects", "rules", "label", "binding", "role", "roleRef"])
async def test_projected_rights_are_restored(ops: Operators, people: People, projection: str, drift: str) -> None:
    """Whatever is done by hand to what was projected is put back."""
    await ops.scope(1, annotations=chosen(projection))
    name = name_of(ops, projection)
    rules = [EVERYTHING if projection == "managed" else GET_LIST]
    before, bound = await ops.given(1, name, lambda found: found["rules"] == rules)
    match drift:
        case "subjects":
            user = {"apiGroup": ROLE.group, "kind": "User", "name": "eve"}
            await people.edit(ROLE_BINDING, name, "tenant1", ("replace", "/subjects", [user]))
        case "rules":
            await people.edit(ROLE, name, "tenant1", ("add", "/rules/-", {**GET_LIST, "resources": ["secrets"]}))
        case "label":
            await people.edit(ROLE, name, "tenant1", ("remove", "/metadata/labels", None))
        case "binding":
            await people.delete(ROLE_BINDING, name, "tenant1")
        case "role":
            await people.delete(ROLE, name, "tenant1")
        case "roleRef":
            metadata = {"name": name, "namespace": "tenant1", "labels": dict(labels_of(bound))}
            body = {key: bound[key] for key in ("apiVersion", "kind", "subjects")}
            reference = {**bound["roleRef"], "kind": "ClusterRole", "name": "view"}

            async def replaced() -> bool:
                """Whether we were quicker than the function."""
                await ops.admin.delete(ROLE_BINDING, name, "tenant1")
                try:
                    await ops.admin.create(ROLE_BINDING, {**body, "metadata": metadata, "roleRef": reference})
                except AlreadyExists:
                    return False
                return True

            await eventually(replaced)
    await ops.people.until(
        ROLE_BINDING,
        name,
        "tenant1",
        lambda found: (
            (found["subjects"], found["roleRef"], labels_of(found)) == (bound["subjects"], bound["roleRef"], labels_of(bound))
        ),
    )
    await ops.people.until(
        ROLE, name, "tenant1", lambda found: (found["rules"], labels_of(found)) == (before["rules"], labels_of(before))
    )


@pytest.mark.check("sb-78")
async def test_deletion_cleans_up(ops: Operators, people: People) -> None:
    """A deleted NamespaceScope takes back what it gave, the summary included, and is gone."""
    await ops.scope(1, 2, annotations=OWN_ROLES)
    await ops.given(2, MY_OP)
    await people.delete(NAMESPACE_SCOPE, "common-service", "ops")
    await ops.people.away(NAMESPACE_SCOPE, "common-service", "ops")
    assert [await ops.in_member(member) for member in (1, 2)] == [[], []]
    assert await ops.admin.get(CONFIG_MAP, LIST, "ops") is None
    assert (await people.get(DEPLOYMENT, "my-op", "ops"))["metadata"]["name"] == "my-op"


@pytest.mark.check("sb-52")
async def test_helm_label_means_no_finalizer(own: Operators, people: People, projection: str) -> None:
    """A NamespaceScope of a Helm release is never held back, and what it gave is cleaned up all the same."""
    await own.begin(1)
    await own.scope(1, labels={"cpfs.helm/install": "true"}, annotations=chosen(projection))
    await own.given(1, name_of(own, projection))
    scope = await own.ready()
    assert FINALIZER not in scope["metadata"].get("finalizers", ())
    await people.delete(NAMESPACE_SCOPE, "common-service", own.home)
    await own.emptied(1)


async def test_license_that_nobody_accepts_is_noted(own: Operators) -> None:
    """Without an accepted license condition and Event say so and nothing is held back; one that accepts is enough for all."""
    note = "the license is not accepted (spec.license.accept); nothing is held back"
    await own.begin(1)
    for name in ("one", "two"):
        await own.scope(1, name=name)
        told = await own.ready(name=name)
        assert find_condition(told, "Ready")["message"] == note  # type: ignore[index]
    await own.listed(1)
    await own.given(1, name_of(own, "managed", "one"))

    async def told_in_events(*notes: str) -> None:
        async def check() -> bool:
            events = await own.events("Reconciled")
            told = {
                name: [each["message"] for each in events if each["involvedObject"]["name"] == name] for name in ("one", "two")
            }
            return all(sorted(found) == sorted(notes) for found in told.values())

        await eventually(check, what=f"the Events {notes}")

    await told_in_events(note)
    await own.scope(1, name="two", license={"accept": True})
    for name in ("one", "two"):
        place = name, own.home
        await own.people.until(
            NAMESPACE_SCOPE,
            *place,
            lambda found: (find_condition(found, "Ready") or {})["message"] == "all members are served",
        )
    await told_in_events(note, "all members are served")


@pytest.mark.check("sb-79")
async def test_deleted_namespace_is_not_held_up(own: Operators, people: People) -> None:
    """The from namespace can be deleted with a NamespaceScope in it, and its members are cleaned up."""
    await own.begin(1)
    await own.scope(1)
    await own.given(1, name_of(own, "managed"))
    await people.delete(NAMESPACE, own.home)
    await own.people.away(NAMESPACE_SCOPE, "common-service", own.home, within=NAMESPACE_GONE_S)
    await own.emptied(1)
    await people.gone(own.home)


@pytest.mark.parametrize("document", ["common-service", "my-operator"])
async def test_examples_of_the_document(scopes: Knative, admin: Api, people: People, document: str) -> None:
    """The example manifests apply as they are written and give what the document says."""
    text = EXAMPLES[document]
    (manifest,) = yaml.safe_load_all(text)
    home = manifest["metadata"].setdefault("namespace", "ibm-common-services")
    found = Operators(admin, home=home)
    members = [name for name in dict.fromkeys(manifest["spec"]["namespaceMembers"]) if name != "default"]
    for name in (home, *members):
        await people.namespace(name)
    for name in (*members, "default"):
        await found.consent(name)
    await found.account("my-op")
    made_from = template()
    made_from["metadata"]["labels"] = {"name": "secretman", "intent": "projected", "app": "my-op"}
    await admin.create(DEPLOYMENT, workload(DEPLOYMENT, home, "secretman", made_from))
    await admin.apply(NAMESPACE_SCOPE, manifest)

    await found.ready(name=document)
    await found.listed(*manifest["spec"]["namespaceMembers"])
    name = f"namespacescope-managed-role-from-{document}"
    for member in manifest["spec"]["namespaceMembers"]:
        binding = await found.people.until(ROLE_BINDING, name, member, bool)
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "my-op", "namespace": home}]
        assert binding["roleRef"]["name"] == name
        role = await people.get(ROLE, name, member)
        assert role["rules"] == [EVERYTHING]
    assert await found.restarted_for(DEPLOYMENT, "secretman") is not None
    await admin.delete(NAMESPACE_SCOPE, document, home)
    await found.people.away(NAMESPACE_SCOPE, document, home)
