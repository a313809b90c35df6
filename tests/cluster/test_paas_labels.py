"""Labels of what a Paas has: namespaces, Groups, quotas, bindings (p-121 to p-126, p-76, p-185)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest
import pytest_asyncio
from admitting import Admitting, paas_ns
from admitting import paas as body_of
from paasing import CONFIG, Paasing, paas_name, together
from righting import righting
from times import LEFT_TO_MAKE_WHOLE
from watching import history

from tenantry.api import Api
from tenantry.api.errors import RefusedError
from tenantry.local.knative import Knative
from tenantry.model.kinds import NAMESPACE, ROLE_BINDING, SECRET, Kind, Object, annotations_of, labels_of
from tenantry.model.paas.names import CLUSTER_RESOURCE_QUOTA, GROUP, MANAGED_BY_PAAS, PAAS_NS, PAAS_UID
from tenantry.model.pointer import pointer
from tenantry.testing import eventually

pytestmark = LEFT_TO_MAKE_WHOLE

WARNED = "tenantry.dev/NamespacesWarnings"
PROTECTED = (
    "pod-security.kubernetes.io/enforce",
    "k8s.io/x",
    "sub.k8s.io/x",
    "openshift.io/x",
    "x.openshift.io/y",
    "field.cattle.io/projectId",
    "kustomize.fluxcd.io/x",
    "argocd.argoproj.io/managed-by",
    "istio.io/rev",
    "topology.istio.io/x",
    "tenantry.dev/adopt",
    "cpet.belastingdienst.nl/x",
    "clusterquotagroup",
    "requestor",
    "billing",
    "cost.example.org/center",
)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """Namespaces and rights, on a cluster with OpenShift's kinds, under the configuration of the checks."""
    return await righting(flawlessly, admin, "os")


async def _labelled(paasing: Paasing, name: str, wanted: Mapping[str, str], lacks: tuple[str, ...] = ()) -> Object:
    """Wait until the namespace ``one`` of a Paas has these labels, and none of those."""

    def holds(found: Object) -> bool:
        labels = labels_of(found)
        return wanted.items() <= labels.items() and not set(lacks) & set(labels)

    return await paasing.until(NAMESPACE, f"{name}-one", "", holds, what=f"labels {wanted}, without {lacks}")


@pytest.mark.check("p-121")
async def test_labels_of_the_paas_are_on_its_namespaces(system: Knative, paasing: Paasing) -> None:
    """They come, change and go with it; what somebody else put there stays."""
    name = paas_name()
    await paasing.paas(name, labels={"team": "a"}, namespaces={"one": {}})
    await _labelled(paasing, name, {"team": "a"})
    await paasing.label(f"{name}-one", {"mine": "1"})
    await paasing.paas(name, labels={"team": "b"}, namespaces={"one": {}})
    await _labelled(paasing, name, {"team": "b", "mine": "1"})
    await paasing.paas(name, namespaces={"one": {}})
    await _labelled(paasing, name, {"mine": "1"}, ("team",))


@pytest.mark.check("p-122")
async def test_protected_labels_are_not_copied_and_are_told(system: Knative, paasing: Paasing) -> None:
    """Each protected domain and key; labels of tools are not copied either, and not told."""
    await paasing.config(protectedLabels=["billing", "*.example.org/*"])
    name, tools = paas_name(), {"app.kubernetes.io/instance": "x", "helm.sh/chart": "y"}
    labels = {**dict.fromkeys(PROTECTED, "v"), **tools, "team": "a"}
    await paasing.paas(name, labels=labels, namespaces={"one": {}}, quota={"pods": "9"}, requestor="me")
    found = await _labelled(paasing, name, {"team": "a"})
    for key in PROTECTED:
        assert labels_of(found).get(key) != "v", key
    assert not set(tools) & set(labels_of(found))
    told = (await paasing.says(name, WARNED, "ProtectedLabel", status="True"))["message"]
    assert len(told) <= 1024
    few = dict.fromkeys(("istio.io/rev", "billing", "cost.example.org/center", "clusterquotagroup"), "v")
    await paasing.paas(name, labels={**few, **tools}, namespaces={"one": {}}, quota={"pods": "9"}, requestor="me")
    told = (await paasing.says(name, WARNED, "ProtectedLabel", "label istio.io/rev"))["message"]
    assert all(f"label {key} " in told for key in few)
    assert not any(key in told for key in tools)
    await paasing.config()


@pytest.mark.check("p-123")
async def test_managed_by_another_paas(system: Knative, paasing: Paasing) -> None:
    """The label names the other Paas' Argo CD; a name that makes the value too long is refused."""
    name = paas_name()
    await paasing.paas(name, namespaces={"one": {}}, managedByPaas="other")
    await _labelled(paasing, name, {"argocd.argoproj.io/managed-by": "other-argocd"})
    with pytest.raises(RefusedError, match="managedByPaas"):
        await paasing.paas(name, namespaces={"one": {}}, managedByPaas="x" * (64 - len("-argocd")))
    await paasing.paas(name, namespaces={"one": {}})
    await _labelled(paasing, name, {"argocd.argoproj.io/managed-by": f"{name}-argocd"})


@pytest.mark.check("p-124")
async def test_labels_can_be_switched_off(system: Knative, paasing: Paasing) -> None:
    """Without a key they are on no namespace; set again, on all."""
    names = [paas_name(), paas_name()]
    for name in names:
        await paasing.paas(name, namespaces={"one": {}}, requestor="me")
        await _labelled(paasing, name, {"requestor": "me"})
    await paasing.config(requestor_label="", managed_by_label="")
    for name in names:
        await _labelled(paasing, name, {}, ("requestor", "argocd.argoproj.io/managed-by"))
    await paasing.config()
    for name in names:
        await _labelled(paasing, name, {"requestor": "me", "argocd.argoproj.io/managed-by": f"{name}-argocd"})


TEMPLATES = {
    "namespaceLabels": {"for-namespaces": "{{ .Paas.Name }}", "requestor": '{{ index .Paas.Labels "team" }}'},
    "groupLabels": {"for-groups": "{{ .Paas.Name }}"},
    "clusterQuotaLabels": {"for-quotas": "{{ .Paas.Name }}"},
    "roleBindingLabels": {"for-bindings": "{{ .Paas.Name }}"},
}
KINDS: Mapping[str, Kind] = {
    "for-namespaces": NAMESPACE,
    "for-groups": GROUP,
    "for-quotas": CLUSTER_RESOURCE_QUOTA,
    "for-bindings": ROLE_BINDING,
}
"""The kind that each label of the templates is for."""


async def _everything(paasing: Paasing, name: str, **more: Any) -> None:
    """Declare a Paas that has some of each kind, and wait until it has."""
    spec = {"namespaces": {"one": {}}, "capabilities": {"argocd": {"enabled": True}}, "groups": {"us": {"users": ["me"]}}}
    await paasing.paas(name, **spec, quota={"pods": "9"}, requestor="me", **more)
    await together(*(paasing.bound(f"{name}-{each}", {"paas-view": [f"{name}-us"]}) for each in ("one", "argocd")))
    await together(*(paasing.until(CLUSTER_RESOURCE_QUOTA, each, "", lambda _: True) for each in (name, f"{name}-argocd")))


async def _made(paasing: Paasing, name: str) -> list[tuple[Kind, Object]]:
    """All that a Paas has, each with its kind."""
    label = f"{MANAGED_BY_PAAS}={name}"
    return [(kind, each) for kind in KINDS.values() for each in (await paasing.admin.list(kind, label_selector=label)).items]


@pytest.mark.check("p-125")
async def test_labels_by_templates(system: Knative, paasing: Paasing) -> None:
    """On exactly their kind; one wins over the built-in value; those that are ours are refused; dropped, they go."""
    name = paas_name()
    await _everything(paasing, name, labels={"team": "a"})
    await _labelled(paasing, name, {"requestor": "me"})

    async def carried(templated: bool) -> bool:
        found = await _made(paasing, name)
        assert len(found) == 2 + 1 + 2 + 2
        shown = [{key: labels_of(each).get(key) for key in KINDS} for _, each in found]
        return shown == [{key: name if templated and of == kind else None for key, of in KINDS.items()} for kind, _ in found]

    await paasing.config(templating=TEMPLATES)
    await eventually(lambda: carried(True), within=paasing.eventually_s, what="each label is on its kind, and on no other")
    await _labelled(paasing, name, {"requestor": "a"})
    for field in TEMPLATES:
        for key in (MANAGED_BY_PAAS, "tenantry.dev/x", "clusterquotagroup"):
            with pytest.raises(RefusedError, match=re.escape(f"spec.templating.{field}[{key}]")):
                await paasing.config(templating={field: {key: "1"}})
    await paasing.config()
    await eventually(lambda: carried(False), within=paasing.eventually_s, what="no label of templates is left")
    await _labelled(paasing, name, {"requestor": "me"})


@pytest.mark.check("p-161")
async def test_secrets_are_told_and_nothing_is_made_of_them(system: Knative, paasing: Paasing, admitting: Admitting) -> None:
    """Of a Paas, a capability, an entry and a PaasNS: admitted with a warning, then told with the path, and no Secret comes."""
    name, some = paas_name(), {"ssh://git": "c2VjcmV0"}
    capabilities = {"grafana": {"enabled": True, "sshSecrets": some}, "tekton": {"enabled": True, "secrets": some}}
    namespaces = {"one": {"secrets": some}, "two": {}}
    spec = {"capabilities": capabilities, "namespaces": namespaces, "quota": {"pods": "9"}}
    await paasing.config(capabilities={each: {"quotas": {"defaults": {"pods": "1"}}} for each in capabilities})
    paths = [f"spec.capabilities[{each}].{field}" for each, field in (("grafana", "sshSecrets"), ("tekton", "secrets"))]
    paths += ["spec.namespaces[one].secrets", "spec.secrets", "spec.sshSecrets"]
    await eventually(
        lambda: admitting.admitted(body_of(secrets=some)),
        lambda said: "spec.secrets" in said,
        what="policies have the PaasConfig",
    )
    answer = await admitting.create(body_of(name, secrets=some, sshSecrets=some, **spec), dry=False)
    assert [each for each in paths if each not in answer.told] == []
    assert "ignored, no Secret is made of it" in answer.told
    told = await paasing.says(name, WARNED, "SecretsIgnored", status="True")
    assert [each for each in paths if each not in told["message"]] == []
    assert "spec.namespaces[two]" not in told["message"]
    await paasing.says(name, "Warnings", "SecretsIgnored", "spec.sshSecrets", status="True")

    for field in ("secrets", "sshSecrets"):
        body = paas_ns(f"{name}-one", field.lower(), **{field: some})
        answer = await admitting.create(body, dry=False)
        assert f"spec.{field}: ignored, no Secret is made of it" in answer.told
        where = {"kind": PAAS_NS, "namespace": f"{name}-one"}
        told = await paasing.says(field.lower(), "Warnings", "SecretsIgnored", f"spec.{field}", status="True", **where)  # type: ignore[arg-type]
    found = await paasing.has_namespaces(name, "one", "two", "grafana", "tekton", "secrets", "sshsecrets")
    assert {each: (await paasing.admin.list(SECRET, each)).items for each in found} == {each: [] for each in found}
    await paasing.config()


@pytest.mark.check("p-76")
async def test_no_label_lifts_a_guard_rail_and_none_stays(system: Knative, paasing: Paasing) -> None:
    """Of a Paas only what nobody protects is copied; what templates say no more is on no binding and quota; no loops."""
    name = paas_name()
    await _everything(paasing, name, labels={"pod-security.kubernetes.io/enforce": "privileged", "team": "a"})
    for each in await paasing.has_namespaces(name, "one", "argocd"):
        found = await paasing.until(NAMESPACE, each, "", lambda live: labels_of(live).get("team") == "a")
        assert "pod-security.kubernetes.io/enforce" not in labels_of(found)

    async def marked() -> list[str | None]:
        found = [each for kind, each in await _made(paasing, name) if kind in (ROLE_BINDING, CLUSTER_RESOURCE_QUOTA)]
        assert len(found) == 2 + 2
        return [labels_of(each).get("x") for each in found]

    await paasing.config(templating={"roleBindingLabels": {"x": "1"}, "clusterQuotaLabels": {"x": "1"}})
    await eventually(marked, lambda found: set(found) == {"1"}, within=paasing.eventually_s, what="x is on all of them")
    await paasing.config()
    await eventually(marked, lambda found: set(found) == {None}, within=paasing.eventually_s, what="x is on none of them")
    loop = "{{ range $key, $value := .Paas.Labels }}{{ $key }}: {{ $value }}{{ end }}"
    for field in ("namespaceLabels", "roleBindingLabels"):
        with pytest.raises(RefusedError, match=re.escape(f"spec.templating.{field}[x]")):
            await paasing.config(templating={field: {"x": loop}})


@pytest.mark.check("p-126")
async def test_labels_that_somebody_changes_are_put_back(system: Knative, paasing: Paasing) -> None:
    """Changed or removed on a namespace, a Group, a quota or a binding, ours, copied and templated ones."""
    name = paas_name()
    await paasing.config(templating=TEMPLATES)
    await _everything(paasing, name, labels={"team": "a"})
    own = {key: (MANAGED_BY_PAAS, key) for key in KINDS}
    own["for-namespaces"] += ("team", "requestor", "clusterquotagroup", "argocd.argoproj.io/managed-by")
    where = {
        "for-namespaces": (f"{name}-one", ""),
        "for-groups": (f"{name}-us", ""),
        "for-quotas": (name, ""),
        "for-bindings": ("paas-view", f"{name}-one"),
    }
    before = {}
    for key, (each, namespace) in where.items():
        live = await paasing.until(KINDS[key], each, namespace, lambda found, key=key: labels_of(found).get(key) == name)
        before[key] = labels_of(live)
        assert set(own[key]) <= before[key].keys()
    for op in ("replace", "remove"):
        for key, (each, namespace) in where.items():
            edits = [(op, pointer("metadata", "labels", label), "other") for label in own[key]]
            await paasing.edit(KINDS[key], each, namespace, *edits)
        for key, (each, namespace) in where.items():
            what, wanted = f"{KINDS[key].kind} has all labels after {op}", before[key]
            await paasing.until(KINDS[key], each, namespace, lambda found, wanted=wanted: labels_of(found) == wanted, what=what)
    await paasing.config()


@pytest.mark.check("p-185")
async def test_another_quota_label(system: Knative, paasing: Paasing) -> None:
    """Namespaces and quotas carry the new one and not the old one, and at no moment does a quota select what is another Paas'.

    Not even where each Paas had the new label before, with the name of the next: there and back.
    """
    key, ring = "example.org/quota", [paas_name() for _ in range(4)]
    labels = {name: {key: ring[place - 1]} for place, name in enumerate(ring)}
    known = {**CONFIG["capabilities"], "tekton": {"quotas": {"clusterwide": True, "ratio": 0.1, "defaults": {"pods": "1"}}}}
    await paasing.config(capabilities=known)
    capabilities = {"argocd": {"enabled": True}, "tekton": {"enabled": True}}
    spec = {"namespaces": {"one": {}, "two": {}}, "capabilities": capabilities, "quota": {"pods": "9"}}
    await together(*(paasing.paas(name, labels=labels[name], **spec) for name in ring))
    quotas = {name: {"one": name, "two": name, "argocd": f"{name}-argocd", "tekton": "paas-tekton"} for name in ring}

    async def carry(new: str, old: str, others: Mapping[str, str | None]) -> None:
        """Wait until namespaces and quotas have one label, and namespaces what is left of the other one."""
        spaces = {f"{name}-{each}": (quota, others[name]) for name in ring for each, quota in quotas[name].items()}
        limits = {quota: {new: quota} for found in quotas.values() for quota in found.values()}

        async def carried() -> bool:
            now = {each["metadata"]["name"]: labels_of(each) for each in (await paasing.admin.list(NAMESPACE)).items}
            live = {name: (found.get(new), found.get(old)) for name, found in now.items() if name in spaces}
            found = (await paasing.admin.list(CLUSTER_RESOURCE_QUOTA)).items
            selected = {each["metadata"]["name"]: selects(each) for each in found if each["metadata"]["name"] in limits}
            return live == spaces and selected == limits

        await eventually(carried, within=paasing.eventually_s, what=f"all carry {new} and {others} of {old}")

    mine = {name: labels[name][key] for name in ring}
    await carry("clusterquotagroup", key, mine)
    listed = {kind: await paasing.admin.list(kind) for kind in (NAMESPACE, CLUSTER_RESOURCE_QUOTA)}
    await paasing.config(capabilities=known, quota_label=key)
    await carry(key, "clusterquotagroup", dict.fromkeys(ring))
    await paasing.config(capabilities=known)
    await carry("clusterquotagroup", key, mine)
    changes = [each for kind, found in listed.items() for each in await history(paasing.admin, kind, found.resource_version)]
    assert len(changes) >= 2 * (4 * 4 + 9)
    assert wrongly_counted([each for found in listed.values() for each in found.items], changes) == []
    await together(*(paasing.leave(name) for name in ring))
    await paasing.config()


def selects(quota: Object) -> dict[str, str]:
    """The labels by which a quota selects namespaces."""
    found: dict[str, str] = quota["spec"]["selector"]["labels"]["matchLabels"]
    return found


def wrongly_counted(before: Sequence[Object], changes: Sequence[tuple[str, Object]]) -> list[str]:
    """The quotas of a Paas that selected a namespace of another one at some moment."""
    now = {(each["kind"], each["metadata"]["name"]): each for each in before}
    found: dict[str, None] = {}
    for change, each in sorted(changes, key=lambda told: int(told[1]["metadata"]["resourceVersion"])):
        now |= {(each["kind"], each["metadata"]["name"]): each}
        if change == "DELETED":
            del now[each["kind"], each["metadata"]["name"]]
        quotas = [
            one for (kind, _), one in now.items() if kind == CLUSTER_RESOURCE_QUOTA.kind and PAAS_UID in annotations_of(one)
        ]
        spaces = [one for (kind, _), one in now.items() if kind == NAMESPACE.kind and PAAS_UID in annotations_of(one)]
        for quota in quotas:
            uid, wanted = annotations_of(quota)[PAAS_UID], selects(quota).items()
            counted = [one for one in spaces if wanted <= labels_of(one).items() and annotations_of(one)[PAAS_UID] != uid]
            found |= {f"{quota['metadata']['name']} counts {one['metadata']['name']}": None for one in counted}
    return list(found)


async def test_a_value_that_no_label_can_have(system: Knative, paasing: Paasing) -> None:
    """It is not written and told; the rest is there."""
    name = paas_name()
    await paasing.config(templating={"namespaceLabels": {"x": "{{ .Paas.Name }} {{ .Paas.Name }}"}})
    await paasing.paas(name, namespaces={"one": {}}, quota={"pods": "9"})
    await paasing.says(name, "tenantry.dev/Namespaces", "InvalidLabelValue", f"label x cannot be '{name} {name}'")
    await _labelled(paasing, name, {"clusterquotagroup": name}, ("x",))
    await paasing.config()
    await paasing.says(name, "tenantry.dev/Namespaces", "Reconciling", status="True")
