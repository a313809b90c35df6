"""The ledger as a component of an installation: who has the key, who reaches it, and what its pod may."""

from __future__ import annotations

import shutil

import manifests
import pytest
from knative_pods import (
    ACTIVATOR,
    API_SERVER,
    BROKER_FILTER,
    BROKER_INGRESS,
    CHARTS,
    DNS,
    FUNCTION,
    IMPOSTOR,
    KAFKA_DISPATCHER,
    METADATA,
    PING,
    SENDER,
    STRANGER,
    SYSTEM,
    Pod,
)
from manifests import Body, Document, pod_templates
from networks import connects

SERVICES = manifests.services()
KEY, COMPONENT = "tenantry-decisions", {"app.kubernetes.io/component": "ledger"}


@pytest.fixture(scope="module", params=["knative", "knative/overlays/deployment"])
def with_ledger(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, kustomize: list[str]) -> list[Document]:
    """An installation that names the component, as docs/history.md says."""
    root = tmp_path_factory.mktemp("installation")
    for folder in manifests.FOLDERS:
        shutil.copytree(manifests.ROOT / folder, root / folder)
    own = root / "own"
    own.mkdir()
    (own / "kustomization.yaml").write_text(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
        f"resources: [../{request.param}]\ncomponents: [../knative/ledger]\n"
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(manifests, "ROOT", root)
        return manifests.render(own, kustomize)


def of(found: list[Document], kind: str, name: str) -> Body:
    """One object."""
    (document,) = [each for each in found if each.kind == kind and each.name == name and "knative" not in each.api_version]
    return document.body


def test_functions_and_ledger_have_the_key_and_nobody_else(with_ledger: list[Document]) -> None:
    """The Secret is mounted where decisions are signed and checked; a function runs without it, the ledger does not."""
    mounted = {}
    for name, template in pod_templates(with_ledger):
        for volume in template["spec"].get("volumes", []):
            if (volume.get("secret") or {}).get("secretName") == KEY:
                (container,) = template["spec"]["containers"]
                assert {"name": "TENANTRY_DECISIONS_KEY", "value": "/etc/tenantry-decisions/key"} in container["env"]
                assert {"name": "decisions", "mountPath": "/etc/tenantry-decisions", "readOnly": True} in container[
                    "volumeMounts"
                ]
                mounted[name.rpartition("/")[2]] = volume["secret"].get("optional", False)

    assert mounted == {**dict.fromkeys(SERVICES, True), "ledger": False}


def test_the_ledger_may_nothing_and_reaches_nobody(with_ledger: list[Document]) -> None:
    """No token, no rights, no policy of functions that chooses its pods; what comes in comes from the broker."""
    pod = of(with_ledger, "Deployment", "ledger")["spec"]["template"]
    assert (pod["spec"]["serviceAccountName"], pod["spec"]["automountServiceAccountToken"]) == ("ledger", False)
    assert "app.kubernetes.io/name" not in pod["metadata"]["labels"]
    bound = [
        each
        for each in with_ledger
        if each.kind.endswith("Binding")
        for subject in each.body.get("subjects") or ()
        if subject.get("name") == "ledger"
    ]
    assert bound == []
    (policy,) = [
        each for each in with_ledger if each.kind == "NetworkPolicy" and each.spec["podSelector"].get("matchLabels") == COMPONENT
    ]
    assert policy.spec["policyTypes"] == ["Ingress"]
    senders = [peer["namespaceSelector"]["matchLabels"] for rule in policy.spec["ingress"] for peer in rule["from"]]
    assert {tuple(each.items()) for each in senders} == {(("kubernetes.io/metadata.name", "knative-eventing"),)}


def test_only_brokers_reach_it_and_it_reaches_nobody(with_ledger: list[Document]) -> None:
    """By our NetworkPolicies, over the labels of Knative's pods: no function, source, tenant's pod or API server comes to it."""
    policies = [each.body for each in with_ledger if each.kind == "NetworkPolicy"]
    ledger = Pod(SYSTEM, of(with_ledger, "Deployment", "ledger")["spec"]["template"]["metadata"]["labels"])
    templates = [each.get("metadata", {}) for name, each in pod_templates(with_ledger) if "ledger" not in name]
    functions = [Pod(SYSTEM, each.get("labels", {})) for each in templates]

    for broker in (BROKER_FILTER, KAFKA_DISPATCHER):
        assert connects(policies, broker, ledger, FUNCTION)
        assert not connects(policies, broker, ledger, FUNCTION + 1)
    for other in (STRANGER, IMPOSTOR, SENDER, ACTIVATOR, API_SERVER, PING, *functions):
        assert not connects(policies, other, ledger, FUNCTION), other
    for other in (API_SERVER, DNS, CHARTS, METADATA, BROKER_INGRESS, *functions):
        assert not connects(policies, ledger, other, 443), other
    assert not connects(policies, ledger, DNS, 53, "UDP")


def test_there_is_room_for_its_one_volume(with_ledger: list[Document]) -> None:
    """The quota, which allows no claim otherwise, allows this one, and one pod at a time writes it."""
    (quota,) = [each for each in with_ledger if each.kind == "ResourceQuota" and each.namespace == "tenantry-system"]
    claims = [each.name for each in with_ledger if each.kind == "PersistentVolumeClaim"]
    deployment = of(with_ledger, "Deployment", "ledger")["spec"]

    assert (quota.spec["hard"]["persistentvolumeclaims"], claims) == ("1", ["ledger"])
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    assert deployment["selector"]["matchLabels"] == of(with_ledger, "Service", "ledger")["spec"]["selector"]
