"""Guards of Flux tenancy: status, labels of namespaces, what was made for tenants, and what a lock keeps (3.4)."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
import pytest_asyncio
from flux_cases import (
    BY_KIND,
    CASES,
    CONSUMER_KINDS,
    EVERYTHING,
    HOME,
    OWNED,
    STATUS_KINDS,
    Case,
    locked,
    prepare,
    source,
    with_chart,
)
from flux_policing import FLUX, TEAM1, Policing, admitted, denied, flux_object, is_checked, kustomization, warnings
from people import token
from times import CONTROLLER_S, LEFT_TO_MAKE_WHOLE, NAMESPACE_GONE_S, POLICY_S

from tenantry.local.fence_policy import POLICY as FENCES
from tenantry.model.flux.names import LOCK_FINALIZER, LOCKED, SUSPENDED_BY_LOCK
from tenantry.model.flux.policies import policies
from tenantry.model.flux.policies.rights import PLATFORM_ROLE
from tenantry.model.flux.policies.served import Served
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import (
    ADMISSION_POLICY,
    ADMISSION_POLICY_BINDING,
    CLUSTER_ROLE,
    CONFIG_MAP,
    NAMESPACE,
    ROLE,
    ROLE_BINDING,
    Object,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

PLATFORM_USER = "platform-only"
"""Has the right to every request and the verb, and is nothing else."""


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def prepared(policing: Policing) -> Profile:
    """All policies, and what the requests change; without the fences, which bound lock-enforcement besides."""
    await policing.admin.delete(ADMISSION_POLICY_BINDING, FENCES)
    profile = await policing.enforce(**EVERYTHING)
    await prepare(policing)
    return profile


async def test_each_policy_has_a_case(policing: Policing, prepared: Profile) -> None:
    """The cases are the policies of the profile, no more and no fewer; what is judged of a delivery has one each."""
    served = Served.of(await policing.admin.groups())
    found = [each for each in policies(prepared, served) if each.validations]
    wanted = {each.name: len(each.validations) if each.name.startswith("delivery-") else 1 for each in found}
    assert len(wanted) == len(found)
    assert Counter(each.policy for each in CASES) == wanted


@pytest.mark.check("f-62")
@pytest.mark.parametrize("case", CASES, ids=lambda each: each.policy)
async def test_each_policy_is_what_refuses(policing: Policing, case: Case) -> None:
    """A request that it refuses by its name is admitted when it is gone, and another one with it."""
    name = f"tenantry-{case.policy}"
    said = denied(await case.refused(policing, TEAM1))
    assert f"'{name}'" in said
    admitted(await case.admitted(policing, TEAM1))

    async def checked() -> Object:
        found = await policing.admin.get(ADMISSION_POLICY, name)
        return found if found is not None and is_checked(found) else {}

    policy = await eventually(checked, within=CONTROLLER_S, what=f"{name} is checked")
    assert warnings(policy) == ""
    binding = await policing.admin.get(ADMISSION_POLICY_BINDING, name)
    assert binding is not None
    await policing.admin.delete(ADMISSION_POLICY_BINDING, name)
    await policing.admin.delete(ADMISSION_POLICY, name)

    async def passes() -> bool:
        return (await case.refused(policing, TEAM1)).status < 300

    await eventually(passes, within=POLICY_S, what=f"admitted without {name}")
    for kind, body in ((ADMISSION_POLICY, policy), (ADMISSION_POLICY_BINDING, binding)):
        metadata = {"name": name, "labels": body["metadata"]["labels"]}
        await policing.admin.create(kind, {**body, "metadata": metadata, "status": None})

    async def refused() -> bool:
        return (await case.refused(policing, TEAM1)).status == 403

    await eventually(refused, within=POLICY_S, what=f"refused by {name} again")


@pytest.mark.check("f-85")
async def test_platform_is_who_has_the_verb(policing: Policing) -> None:
    """A tenant is refused, a cluster administrator is not, and neither is who has the verb and the right to the request."""
    every = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "create", "update", "patch", "delete", "bind"]}
    await policing.admin.apply(CLUSTER_ROLE, obj(CLUSTER_ROLE, "every-request", rules=[every]))
    cases = [each for each in CASES if each.platform_may]
    assert len(cases) == len(CONSUMER_KINDS) + 9
    await policing.bound(PLATFORM_USER, "every-request")
    await policing.may(PLATFORM_USER, "delete", obj(NAMESPACE, "x"))
    for case in cases:
        for user in (TEAM1, PLATFORM_USER):
            assert f"'tenantry-{case.policy}'" in denied(await case.refused(policing, user))
        admitted(await case.refused(policing, ""))

    await policing.bound(PLATFORM_USER, PLATFORM_ROLE)

    async def passes() -> bool:
        return (await cases[0].refused(policing, PLATFORM_USER)).status < 300

    await eventually(passes, within=POLICY_S, what="the verb counts")
    for case in cases:
        admitted(await case.refused(policing, PLATFORM_USER))


@pytest.mark.check("f-42")
async def test_a_tenant_has_everything_in_its_namespace_and_nothing_outside(policing: Policing) -> None:
    """cluster-admin by a RoleBinding, as `create tenant` gives it."""
    config = obj(CONFIG_MAP, f"c{token()}", "dev-team2", data={})
    outside = [obj(CLUSTER_ROLE, f"evil-{token()}", rules=[]), obj(NAMESPACE, f"x{token()}"), config]
    for each in outside:
        answer = await policing.create(each, user=TEAM1)
        assert answer.status == 403, answer
    role = obj(ROLE, f"r{token()}", HOME, rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])
    ref = {"apiGroup": ROLE.group, "kind": "ClusterRole", "name": "view"}
    binding = obj(ROLE_BINDING, f"b{token()}", HOME, roleRef=ref, subjects=[])
    for each in (obj(CONFIG_MAP, f"c{token()}", HOME, data={}), role, binding):
        await policing.admitted(each, user=TEAM1)


@pytest.mark.check("f-48")
async def test_a_tenant_does_not_label_its_namespace(policing: Policing) -> None:
    """With the label it would have what is shared with another team."""
    body = obj(NAMESPACE, HOME)
    denied(await policing.merge(body, {"metadata": {"labels": {"team": "two"}}}, user=TEAM1), "metadata.labels[team]")


@pytest.mark.check("f-50")
async def test_a_namespace_is_deleted_by_the_platform(policing: Policing) -> None:
    """It goes with everything in it, also what only the platform may delete."""
    denied(await policing.delete(obj(NAMESPACE, HOME), user=TEAM1, dry=False))
    name = f"ending-{token()}"
    user = await policing.tenant(name, {"team": "nine"})
    denied(await policing.delete(obj(NAMESPACE, name), user=user, dry=False))
    await policing.made(flux_object("ExternalArtifact", name, "a", spec={}))
    await policing.made(kustomization(name))
    await policing.admin.apply(CONFIG_MAP, obj(CONFIG_MAP, "c", name, data={}))
    admitted(await policing.delete(obj(NAMESPACE, name), dry=False))

    async def gone() -> bool:
        return await policing.admin.get(NAMESPACE, name) is None

    await eventually(gone, within=NAMESPACE_GONE_S, what=f"namespace {name} is gone")


@pytest.mark.check("f-123")
@pytest.mark.parametrize("subresource", ["", "status", "finalize"])
async def test_labels_are_guarded_on_every_way(policing: Policing, subresource: str) -> None:
    """PUT, PATCH and server-side apply; the name of a namespace in its labels is always its own."""
    path = f"/api/v1/namespaces/{HOME}" + (f"/{subresource}" if subresource else "")
    live = await policing.admin.get(NAMESPACE, HOME)
    assert live is not None
    labels = {**live["metadata"]["labels"], "team": "two"}
    ways = [("PUT", {**live, "metadata": {**live["metadata"], "labels": labels}}, "application/json", {})]
    if subresource != "finalize":  # it has no other verb
        ways.append(("PATCH", {"metadata": {"labels": {"team": "two"}}}, "application/merge-patch+json", {}))
        applied = obj(NAMESPACE, HOME, labels={"team": "two"})
        ways.append(("PATCH", applied, "application/apply-patch+yaml", {"fieldManager": "x", "force": "true"}))
    for method, body, content, query in ways:
        denied(await policing.ask(method, path, body, user=TEAM1, content=content, **query), "metadata.labels[team]")

    forged = {**live["metadata"]["labels"], "kubernetes.io/metadata.name": FLUX}
    body = {**live, "metadata": {**live["metadata"], "labels": forged}}
    await policing.ask("PUT", path, body, user=TEAM1)
    stored = await policing.admin.get(NAMESPACE, HOME)
    assert stored is not None
    assert stored["metadata"]["labels"] == live["metadata"]["labels"]
    await policing.denied(kustomization(HOME, "GitRepository/dev-team2/x"), user=TEAM1)


@pytest.mark.check("f-126")
async def test_who_may_create_namespaces_labels_none(policing: Policing) -> None:
    """Without labels it is made; with a team's it is refused."""
    rule = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create"]}
    await policing.admin.apply(CLUSTER_ROLE, obj(CLUSTER_ROLE, "namespace-maker", rules=[rule]))
    await policing.bound("maker", "namespace-maker")
    await policing.may("maker", "create", obj(NAMESPACE, "x"))
    await policing.admitted(obj(NAMESPACE, f"n{token()}"), user="maker")
    await policing.denied(obj(NAMESPACE, f"n{token()}", labels={"team": "two"}), "metadata.labels[team]", user="maker")


# -- what decides the content -----------------------------------------------------------------------------


@pytest.mark.check("f-110")
@pytest.mark.parametrize("kind", STATUS_KINDS)
async def test_the_status_of_a_source_is_written_by_its_controller(policing: Policing, kind: str) -> None:
    """By no tenant, in no way; by an account of flux-system with the right to it, and by the platform."""
    controller = await policing.controller("source-controller")
    body = source(kind)
    status = {"status": {"artifact": {"url": "http://x", "digest": "sha256:0"}}}
    live = (await policing.ask("GET", policing.path(body))).body
    put = policing.path(body) + "/status"
    applied = {**body, **status, "spec": {}}
    answers = [
        await policing.merge(body, status, user=TEAM1, subresource="status", dry=False),
        await policing.ask("PUT", put, {**live, **status}, user=TEAM1),
        await policing.apply(applied, user=TEAM1, subresource="status"),
    ]
    for each in answers:
        denied(each, "tenantry-source-status")
    for user in (controller, ""):
        admitted(await policing.merge(body, status, user=user, subresource="status"))


@pytest.mark.check("f-112")
async def test_external_artifacts_are_written_by_their_producers(policing: Policing) -> None:
    """A tenant makes, changes and deletes none."""
    controller = await policing.controller("source-watcher")
    new, old = source("ExternalArtifact", name=f"a{token()}"), source("ExternalArtifact")
    change = {"spec": {"sourceRef": {"kind": "ArtifactGenerator", "name": "g"}}}
    for user, judge in ((TEAM1, denied), (controller, admitted)):
        judge(await policing.create(new, user=user))
        judge(await policing.merge(old, change, user=user))
        judge(await policing.delete(old, user=user))


@pytest.mark.check("f-114")
@pytest.mark.parametrize("source_of", ["HelmRepository//charts", "HelmRepository/flux-system/bitnami"])
async def test_metadata_of_charts_has_no_keys_of_tenancy(policing: Policing, source_of: str) -> None:
    """They would be on a HelmChart beside the source; keys of others are admitted."""
    await policing.index({"HelmRepository/flux-system/bitnami": "*"})
    for part, key in (
        ("annotations", "tenantry.dev/access-from"),
        ("labels", "tenantry.dev/tenant"),
        ("labels", "toolkit.fluxcd.io/tenant"),
        ("labels", "helm.toolkit.fluxcd.io/name"),
        ("annotations", "kustomize.toolkit.fluxcd.io/prune"),
    ):
        body = with_chart(source_of=source_of, metadata={part: {key: "x"}})
        await policing.denied(body, f"spec.chart.metadata.{part}[{key}]", user=TEAM1)
    others = {"labels": {"example.com/a": "b", "my-toolkit.fluxcd.io.example.com/a": "b"}, "annotations": {"x": "y"}}
    await policing.admitted(with_chart(source_of=source_of, metadata=others), user=TEAM1)


@pytest.mark.check("f-115")
async def test_charts_elsewhere_are_not_verified_with_secrets_there(policing: Policing) -> None:
    """Of a granted source the chart may be used; the Secret of its verification would be the owner's."""
    key = "HelmRepository/flux-system/bitnami"
    await policing.index({key: "*"})
    verify = {"secretRef": {"name": "keys"}}
    said = await policing.denied(with_chart(source_of=key, verify=verify), user=TEAM1)
    assert "spec.chart.spec.verify.secretRef" in said
    await policing.admitted(with_chart(source_of=key), user=TEAM1)
    await policing.admitted(with_chart(verify=verify), user=TEAM1)


@pytest.mark.check("f-116")
async def test_the_status_of_a_helm_release_is_its_controllers(policing: Policing) -> None:
    """What it names there is deleted with the controller's rights."""
    controller = await policing.controller("helm-controller")
    body = flux_object("HelmRelease", HOME, "own")
    status = {"status": {"helmChart": f"{FLUX}/shared"}}
    denied(await policing.merge(body, status, user=TEAM1, subresource="status"), "tenantry-helmrelease-status")
    admitted(await policing.merge(body, status, user=controller, subresource="status"))


@pytest.mark.check("f-117")
async def test_a_helm_chart_stays_that_of_the_first_release(policing: Policing) -> None:
    """helm-controller would write it for a second one whose name with its namespace is the same."""
    controller = await policing.controller("helm-controller")
    first = flux_object("HelmChart", FLUX, "a-b-c", spec={"chart": "c", "version": "1"}, labels=OWNED)
    stored = admitted(await policing.apply(first, user=controller, manager="helm-controller"))
    labels = {"helm.toolkit.fluxcd.io/name": "c", "helm.toolkit.fluxcd.io/namespace": "a-b"}
    second = flux_object("HelmChart", FLUX, "a-b-c", spec={"chart": "evil"}, labels=labels)
    said = denied(await policing.apply(second, user=controller, manager="helm-controller"))
    assert "HelmRelease a/b-c" in said
    live = admitted(await policing.ask("GET", policing.path(first)))
    assert (live["metadata"]["labels"], live["spec"]) == (stored["metadata"]["labels"], stored["spec"])
    newer = {**first, "spec": {"chart": "c", "version": "2"}}
    admitted(await policing.apply(newer, user=controller, manager="helm-controller"))
    for key in labels:
        denied(await policing.merge(first, {"metadata": {"labels": {key: None}}}, user=controller))
        denied(await policing.merge(first, {"metadata": {"labels": {key: None}}}))


# -- further consumers ------------------------------------------------------------------------------------


@pytest.mark.check("f-120")
async def test_providers_of_inputs_select_at_home(policing: Policing) -> None:
    """Another namespace, and all of them, are refused."""
    for namespace, judge in (("dev-team2", denied), ("*", denied), ("", admitted)):
        selector = {"namespace": namespace} if namespace else {}
        spec = {"type": "ExternalArtifact", "selectors": [selector]}
        judge(await policing.create(flux_object("ResourceSetInputProvider", HOME, spec=spec), user=TEAM1))


# -- locks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CONSUMER_KINDS)
async def test_a_lock_is_kept(policing: Policing, kind: str) -> None:
    """Its marks, all finalizers and the suspension; what is added is admitted; who may is lock-enforcement or a person."""
    body, stop = locked(kind), BY_KIND[kind].stop
    resumed: Object = {"spec": {"suspend": False}} if stop.field else {"metadata": {"annotations": {stop.annotation: None}}}
    changes: list[Object] = [
        resumed,
        {"metadata": {"annotations": {LOCKED: None}}},
        {"metadata": {"annotations": {LOCKED: "x"}}},
        {"metadata": {"annotations": {SUSPENDED_BY_LOCK: None}}},
        {"metadata": {"finalizers": [LOCK_FINALIZER]}},
        {"metadata": {"finalizers": ["finalizers.fluxcd.io"]}},
    ]
    controller = await policing.administrator(FLUX, "kustomize-controller")
    lock_enforcement = await policing.administrator("tenantry-system", "lock-enforcement-access")
    for user in (TEAM1, controller):
        for each in await asyncio.gather(*(policing.merge(body, change, user=user) for change in changes)):
            denied(each, "lock-guard", "not shared with namespace dev-team1")
    for user in ("", lock_enforcement):
        for each in await asyncio.gather(*(policing.merge(body, change, user=user) for change in changes)):
            admitted(each)
    more = {"metadata": {"annotations": {"a": "b"}, "finalizers": [*body["metadata"]["finalizers"], "example.com/more"]}}
    admitted(await policing.merge(body, more, user=TEAM1))


async def test_a_lock_is_kept_while_an_object_goes(policing: Policing) -> None:
    """Flux' controller would take its finalizer off, and leave what it had applied."""
    body = locked("Kustomization", name=f"going-{token()}")
    await policing.made(body)
    admitted(await policing.delete(body, user=TEAM1, dry=False))
    controller = await policing.administrator(FLUX, "kustomize-controller")
    done = {"metadata": {"finalizers": [LOCK_FINALIZER]}}
    denied(await policing.merge(body, done, user=controller, dry=False), "lock-guard")
    free = {"metadata": {"annotations": {LOCKED: None, SUSPENDED_BY_LOCK: None}, "finalizers": ["finalizers.fluxcd.io"]}}
    admitted(await policing.merge(body, {**free, "spec": {"suspend": None}}, dry=False))
    admitted(await policing.merge(body, {"metadata": {"finalizers": None}}, user=controller, dry=False))
    answer = await policing.ask("GET", policing.path(body))
    assert answer.status == 404
