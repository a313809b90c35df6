"""Labels of the namespaces and quotas of a Paas (p-121 to p-126, p-76, p-185)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import pytest
import pytest_asyncio
from admitting import Admitting, paas_ns
from admitting import paas as body_of
from paasing import CONFIG, Paasing, make_roles, make_world, paas_name

from tenantry.api import Api
from tenantry.api.errors import RefusedError
from tenantry.local.knative import Knative
from tenantry.model.kinds import NAMESPACE, SECRET, Object, labels_of
from tenantry.model.paas.names import CLUSTER_RESOURCE_QUOTA, PAAS_NS
from tenantry.testing import eventually

FUNCTION = "namespace-registration"
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


@pytest.fixture(scope="module")
def paasing(admin: Api) -> Paasing:
    """Authors of Paas and the administrator of the PaasConfig."""
    return Paasing(admin)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api, paasing: Paasing) -> Knative:
    """The function, on a cluster with OpenShift's kinds, under the configuration of the checks."""
    await make_world(admin, "os")
    await make_roles(admin)
    running = await flawlessly({}, functions=[FUNCTION])
    await paasing.config()
    return running


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


async def test_labels_by_templates(system: Knative, paasing: Paasing) -> None:
    """On namespaces and on quotas, each its own; one wins over the built-in value; dropped, they go (half of p-125 and p-76)."""
    name = paas_name()
    await paasing.paas(name, labels={"team": "a"}, namespaces={"one": {}}, quota={"pods": "9"}, requestor="me")
    await _labelled(paasing, name, {"requestor": "me"})
    templates = {
        "namespaceLabels": {"x": "{{ .Paas.Name }}", "requestor": '{{ index .Paas.Labels "team" }}'},
        "clusterQuotaLabels": {"y": "1"},
    }
    await paasing.config(templating=templates)
    await _labelled(paasing, name, {"x": name, "requestor": "a"}, ("y",))
    quota = await paasing.until(CLUSTER_RESOURCE_QUOTA, name, "", lambda found: labels_of(found).get("y") == "1")
    assert "x" not in labels_of(quota)
    await paasing.config()
    await _labelled(paasing, name, {"requestor": "me"}, ("x",))
    await paasing.until(CLUSTER_RESOURCE_QUOTA, name, "", lambda found: "y" not in labels_of(found))


@pytest.mark.check("p-161")
async def test_secrets_are_told_and_nothing_is_made_of_them(system: Knative, paasing: Paasing, admitting: Admitting) -> None:
    """Of a Paas, a capability, an entry and a PaasNS: admitted with a warning, then told with the path, and no Secret comes."""
    name, some = paas_name(), {"ssh://git": "c2VjcmV0"}
    capabilities = {"argocd": {"enabled": True, "sshSecrets": some}, "tekton": {"enabled": True, "secrets": some}}
    namespaces = {"one": {"secrets": some}, "two": {}}
    spec = {"capabilities": capabilities, "namespaces": namespaces, "quota": {"pods": "9"}}
    paths = [f"spec.capabilities[{each}].{field}" for each, field in (("argocd", "sshSecrets"), ("tekton", "secrets"))]
    paths += ["spec.namespaces[one].secrets", "spec.secrets", "spec.sshSecrets"]
    tekton = {"tekton": {"quotas": {"defaults": {"pods": "1"}}}}
    await paasing.config(capabilities={**CONFIG["capabilities"], **tekton})
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

    for field in ("secrets", "sshSecrets"):
        body = paas_ns(f"{name}-one", field.lower(), **{field: some})
        answer = await admitting.create(body, dry=False)
        assert f"spec.{field}: ignored, no Secret is made of it" in answer.told
        where = {"kind": PAAS_NS, "namespace": f"{name}-one"}
        told = await paasing.says(field.lower(), "Warnings", "SecretsIgnored", f"spec.{field}", status="True", **where)  # type: ignore[arg-type]
    found = await paasing.has_namespaces(name, "one", "two", "argocd", "tekton", "secrets", "sshsecrets")
    assert {each: (await paasing.admin.list(SECRET, each)).items for each in found} == {each: [] for each in found}
    await paasing.config()


async def test_another_quota_label(system: Knative, paasing: Paasing) -> None:
    """Namespaces and quotas carry the new one, and not the old one (half of p-185)."""
    name = paas_name()
    await paasing.paas(name, namespaces={"one": {}}, quota={"pods": "9"})
    await _labelled(paasing, name, {"clusterquotagroup": name})
    await paasing.config(quota_label="example.org/quota")
    await _labelled(paasing, name, {"example.org/quota": name}, ("clusterquotagroup",))
    wanted = {"example.org/quota": name}
    await paasing.until(
        CLUSTER_RESOURCE_QUOTA, name, "", lambda found: found["spec"]["selector"]["labels"]["matchLabels"] == wanted
    )
    await paasing.config()
    await _labelled(paasing, name, {"clusterquotagroup": name}, ("example.org/quota",))


async def test_a_value_that_no_label_can_have(system: Knative, paasing: Paasing) -> None:
    """It is not written and told; the rest is there."""
    name = paas_name()
    await paasing.config(templating={"namespaceLabels": {"x": "{{ .Paas.Name }} {{ .Paas.Name }}"}})
    await paasing.paas(name, namespaces={"one": {}}, quota={"pods": "9"})
    await paasing.says(name, "tenantry.dev/Namespaces", "InvalidLabelValue", f"label x cannot be '{name} {name}'")
    await _labelled(paasing, name, {"clusterquotagroup": name}, ("x",))
    await paasing.config()
    await paasing.says(name, "tenantry.dev/Namespaces", "Reconciling", status="True")
