"""Configurations other than the reference one, each with a system of its own (hpo-6, hpo-24, hpo-25, hpo-57)."""

from __future__ import annotations

from typing import Any

import pytest
from flawless import Calm
from people import (
    C1,
    CHART_CONFIG_MAP,
    FUNCTION,
    LABEL,
    OPERATED,
    POLICY,
    PROJECT_ID,
    People,
    Start,
    changed,
    marks,
    marks_of,
    registration,
    token,
)
from pydantic import ValidationError
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.api.errors import AlreadyExists, Invalid
from tenantry.model.config import Chart
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, NETWORK_POLICY, SERVICE_ACCOUNT, annotations_of, labels_of
from tenantry.testing.settling import settle, snapshot

KINDS = (NAMESPACE, CONFIG_MAP, SERVICE_ACCOUNT, NETWORK_POLICY)

OPEN_POLICY: dict[str, Any] = {
    "ingress": [{"from": [{"namespaceSelector": {}}], "ports": [{"port": 443}, {"port": 53, "protocol": "UDP"}]}],
    "policyTypes": ["Ingress", "Egress"],
}
"""Lets everybody in on two ports, of which one is given without its protocol, and nothing out."""

pytestmark = [pytest.mark.timeout(300), LEFT_TO_MAKE_WHOLE]  # every project of the test run is written anew


@pytest.mark.check("hpo-6", "hpo-24")
async def test_without_cluster_id_and_hardening(running: Start, people: People, admin: Api, calm: Calm) -> None:
    """Without clusterId the annotation is the project id alone; with hardening off neither object is written."""
    config = changed(C1, cattle={"clusterId": ""}, operator={"hardenedNamespaces": {"enabled": False}})
    async with running(config) as knative:
        project = await people.project()
        await calm(knative)

        name = registration(project)
        assert project == annotations_of(await people.get(NAMESPACE, name))[LABEL]
        assert await admin.get(NETWORK_POLICY, POLICY, name) is None
        account = await people.until(SERVICE_ACCOUNT, "default", name, lambda _: True)
        assert "automountServiceAccountToken" not in account
        assert OPERATED not in labels_of(account)


@pytest.mark.check("hpo-25")
async def test_hardening_as_configured(running: Start, people: People, admin: Api, calm: Calm) -> None:
    """A configured ServiceAccount and policy are written as they are, kept so, and written once."""
    spec = {
        "serviceAccountSpec": {
            "automountServiceAccountToken": True,
            "secrets": [{"name": "mine"}],
            "imagePullSecrets": [{"name": "registry"}],
        },
        "networkPolicySpec": OPEN_POLICY,
    }
    config = changed(C1, operator={"hardenedNamespaces": {"enabled": True, "configuration": spec}})
    async with running(config) as knative:
        project = await people.project()
        await calm(knative)
        name = registration(project)

        account = await people.get(SERVICE_ACCOUNT, "default", name)
        assert account["automountServiceAccountToken"] is True
        assert (account["secrets"], account["imagePullSecrets"]) == ([{"name": "mine"}], [{"name": "registry"}])
        policy = await people.get(NETWORK_POLICY, POLICY, name)
        assert (policy["spec"]["ingress"], policy["spec"]["policyTypes"]) == (
            [
                {
                    "from": [{"namespaceSelector": {}}],
                    "ports": [{"port": 443, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
                }
            ],
            ["Ingress", "Egress"],
        )

        before = await snapshot(admin, KINDS, containing=project)
        await knative.sweep(FUNCTION)
        await calm(knative)
        assert before == await snapshot(admin, KINDS, containing=project)

        # The configured policy says nothing about egress beyond denying it; rules that somebody adds are drift all the same.
        await people.edit(NETWORK_POLICY, POLICY, name, ("add", "/spec/egress", [{}]))
        await people.edit(SERVICE_ACCOUNT, "default", name, ("replace", "/imagePullSecrets", [{"name": "other"}]))
        await calm(knative)
        assert policy["spec"] == (await people.get(NETWORK_POLICY, POLICY, name))["spec"]
        account = await people.get(SERVICE_ACCOUNT, "default", name)
        assert account["imagePullSecrets"] == [{"name": "registry"}]


async def test_changed_configuration_reaches_what_exists(running: Start, people: People, admin: Api, calm: Calm) -> None:
    """After a restart with another configuration, the start's own sweep brings every registration namespace up to it."""
    labels = {"helmApiVersion": "dummy.cattle.io/v1alpha1", "releaseName": "dummy"}
    second = {"helmApiVersion": "monitoring.cattle.io/v1alpha1", "releaseName": "monitoring"}
    async with running(C1) as knative:
        project = await people.project()
        await calm(knative)
    operator = {"charts": [labels, second], "namespaceLabels": {"owner": "team-x"}, "namespaceAnnotations": {"cost": "7"}}
    async with running(changed(C1, cattle={"clusterId": "c-other"}, operator=operator)) as knative:
        await settle(knative, admin)
        name = registration(project)
        found = await people.get(NAMESPACE, name)
        assert f"c-other:{project}" == annotations_of(found)[LABEL]
        assert (labels_of(found)["owner"], annotations_of(found)["cost"]) == ("team-x", "7")
        await people.get(CONFIG_MAP, "monitoring.cattle.io.v1alpha1", name)
        await people.get(CONFIG_MAP, CHART_CONFIG_MAP, name)
    async with running(C1) as knative:
        await settle(knative, admin)
        found = await people.get(NAMESPACE, name)
        assert marks_of(project) == marks(found)
        assert "owner" not in labels_of(found), "what is no longer configured is given up"
        assert "cost" not in annotations_of(found)


async def test_project_that_is_denied_later_is_orphaned(running: Start, people: People, admin: Api, calm: Calm) -> None:
    """A project that the configuration denies after a restart is orphaned, and served again when it no longer does."""
    async with running(C1) as knative:
        project = await people.project()
        await calm(knative)
    denied = {"otherSystemProjectLabelValues": ["p-denied", project]}
    async with running(changed(C1, operator=denied)) as knative:
        await settle(knative, admin)
        assert marks_of(project, orphaned=True) == marks(await people.get(NAMESPACE, registration(project)))
        assert PROJECT_ID not in labels_of(await people.get(NAMESPACE, f"a1-{project}"))
        await people.namespace(f"a2-{project}", project)
        await calm(knative)
        assert marks_of(project, orphaned=True) == marks(await people.get(NAMESPACE, registration(project)))
    async with running(C1) as knative:
        await settle(knative, admin)
        assert marks_of(project) == marks(await people.get(NAMESPACE, registration(project)))


@pytest.mark.check("hpo-57")
async def test_single_namespace_mode(running: Start, people: People, admin: Api, calm: Calm) -> None:
    """Without a project label nothing is labelled or made but the ConfigMap, and namespaces come and go without harm."""
    system, run = "cattle-helm-system", token()
    await people.namespace(f"old-{run}", f"p-{run}")
    async with running(changed(C1, cattle={"projectLabel": ""})) as knative:
        pid = knative.functions[FUNCTION].pid
        await people.until(CONFIG_MAP, CHART_CONFIG_MAP, system, lambda found: labels_of(found).get(OPERATED) == "true")
        await settle(knative, admin)
        before = await snapshot(admin, [NAMESPACE])

        await people.namespace(f"new-{run}", f"p-{run}")
        await people.namespace(registration(f"p-{run}"), f"p-{run}")
        await people.delete(NAMESPACE, f"old-{run}")
        await people.gone(f"old-{run}")
        await people.edit(CONFIG_MAP, CHART_CONFIG_MAP, system, ("replace", "/data/values.yaml", "mine: true"))
        await calm(knative)

        restored = await people.get(CONFIG_MAP, CHART_CONFIG_MAP, system)
        assert restored["data"]["values.yaml"] != "mine: true"
        after = await snapshot(admin, [NAMESPACE])
        assert [uid for uid in before if uid in after and before[uid] != after[uid]] == []
        assert PROJECT_ID not in labels_of(await people.get(NAMESPACE, f"new-{run}"))
        assert await admin.get(CONFIG_MAP, CHART_CONFIG_MAP, registration(f"p-{run}")) is None
        assert pid == knative.functions[FUNCTION].pid
        assert not knative.dead_letters.exists()


@pytest.mark.parametrize(
    "version",
    [
        "a/1",
        f"{'a' * 63}/v1",
        f"{'.'.join('a' * 32)}/{'v' * 63}",
        "a-b.c-d/v-1",
        "kube-root-ca/crt",
        f"{'a' * 64}/v1",
        "a..b/v1",
        "a/v-",
    ],
)
async def test_an_accepted_version_can_name_what_is_made_of_it(admin: Api, version: str) -> None:
    """What the configuration takes as a helmApiVersion, and nothing else, the API server takes as ConfigMap and label."""
    group, name = version.partition("/")[0], version.replace("/", ".")
    labels = {"helm.cattle.io/helm-api-version": group}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default", "labels": labels}}
    try:
        chart = Chart.model_validate({"helmApiVersion": version, "releaseName": "r"})
    except ValidationError:
        with pytest.raises((Invalid, AlreadyExists)):
            await admin.create(CONFIG_MAP, made, dry_run=True)
        return
    assert (chart.config_map_name, chart.helm_api_group) == (name, group)
    await admin.create(CONFIG_MAP, made, dry_run=True)
