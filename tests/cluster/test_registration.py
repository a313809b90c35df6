"""Registration namespaces: how they appear, what they hold, and that drift is put back (hpo-1 to 5, 7 to 9, 22, 23, 26)."""

from __future__ import annotations

from pathlib import Path

import pytest
from flawless import Calm
from people import (
    C1,
    CHART_CONFIG_MAP,
    LABEL,
    OPERATED,
    ORPHANED,
    POLICY,
    PROJECT_ID,
    People,
    marks,
    marks_of,
    registration,
    token,
)

import tenantry.serving.charts
from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, NETWORK_POLICY, SERVICE_ACCOUNT, labels_of
from tenantry.testing.settling import snapshot

DENY_ALL = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


@pytest.fixture
async def project(c1: Knative, people: People) -> str:
    """A project with one namespace, ``a1-<project>``, that is registered."""
    return await people.project()


@pytest.mark.check("hpo-1")
async def test_labelled_namespace_registers_its_project(project: str, people: People) -> None:
    """A namespace with the project label makes the project's registration namespace appear, with all its marks."""
    assert marks_of(project) == marks(await people.get(NAMESPACE, registration(project)))


@pytest.mark.check("hpo-2")
async def test_member_carries_its_project(project: str, people: People) -> None:
    """A namespace of a project remembers it in a label of its own, for charts that select by it."""
    await people.until(NAMESPACE, f"a1-{project}", "", lambda found: labels_of(found).get(PROJECT_ID) == project)


@pytest.mark.check("hpo-3")
async def test_config_map_shows_the_chart(project: str, people: People) -> None:
    """The registration namespace shows the chart's values and questions, word for word."""
    chart = tenantry.serving.charts.EXAMPLE_CHART
    found = await people.get(CONFIG_MAP, CHART_CONFIG_MAP, registration(project))

    expected = {name: Path(chart / name).read_text() for name in ("values.yaml", "questions.yaml")}
    assert expected == found["data"]
    assert {OPERATED: "true", PROJECT_ID: project} == found["metadata"]["labels"]


@pytest.mark.check("hpo-4")
@pytest.mark.parametrize("drift", ["edited", "key added", "key removed", "label removed", "immutable", "deleted"])
async def test_config_map_is_restored(project: str, people: People, admin: Api, drift: str) -> None:
    """The chart's ConfigMap comes back after an edit, as immutable, and after its deletion."""
    where = (CONFIG_MAP, CHART_CONFIG_MAP, registration(project))
    before = await people.get(*where)
    match drift:
        case "edited":
            await people.edit(*where, ("replace", "/data/values.yaml", "mine: true"))
        case "key added":
            await people.edit(*where, ("add", "/data/values.yaml", ""), ("add", "/data/mine", "stays"))
        case "key removed":
            await people.edit(*where, ("remove", "/data/questions.yaml", None))
        case "label removed":
            await people.edit(*where, ("remove", "/metadata/labels", None))
        case "immutable":
            await people.edit(*where, ("replace", "/data/values.yaml", "mine: true"), ("add", "/immutable", True))
        case "deleted":
            await people.delete(*where)

    def restored(found: dict) -> bool:  # type: ignore[type-arg]
        data = {name: text for name, text in found["data"].items() if name != "mine"}
        return data == before["data"] and not found.get("immutable") and labels_of(found) == labels_of(before)

    after = await people.until(*where, restored)

    recreated = drift in ("immutable", "deleted")
    assert recreated == (after["metadata"]["uid"] != before["metadata"]["uid"]), "made anew only where it must be"


@pytest.mark.check("hpo-5")
async def test_label_is_put_back_and_foreign_labels_stay(project: str, people: People, c1: Knative, calm: Calm) -> None:
    """Our label on the registration namespace comes back, and a label that somebody else put there stays."""
    name = registration(project)
    await people.label(name, {OPERATED: None, "team": "x"})
    await people.until(NAMESPACE, name, "", lambda found: labels_of(found).get(OPERATED) == "true")
    await calm(c1)

    found = await people.get(NAMESPACE, name)
    assert labels_of(found)["team"] == "x"
    assert marks_of(project) == marks(found)


@pytest.mark.parametrize(
    "labels",
    [
        {OPERATED: None},
        {OPERATED: "false"},
        {PROJECT_ID: "p-other"},
        {PROJECT_ID: None},
        {LABEL: "p-other"},
        {LABEL: None},
        {ORPHANED: "true"},
        {OPERATED: None, PROJECT_ID: None, LABEL: None},
    ],
    ids=lambda labels: ",".join(f"{key.rpartition('/')[2]}={value}" for key, value in labels.items()),
)
async def test_edited_labels_are_put_back(
    project: str, people: People, c1: Knative, calm: Calm, labels: dict[str, str | None]
) -> None:
    """Whatever somebody does to our labels on a registration namespace, it is undone, and no other project hears of it."""
    name = registration(project)
    await people.label(name, labels)
    await calm(c1)

    assert marks_of(project) == marks(await people.get(NAMESPACE, name))
    assert await people.admin.get(NAMESPACE, registration("p-other")) is None


@pytest.mark.parametrize("value", ["c-test:p-other", None], ids=["changed", "removed"])
async def test_edited_annotation_is_put_back(project: str, people: People, c1: Knative, calm: Calm, value: str | None) -> None:
    """The project annotation of a registration namespace comes back as it was."""
    name = registration(project)
    await people.label(name, {LABEL: value}, "annotations")
    await calm(c1)

    assert marks_of(project) == marks(await people.get(NAMESPACE, name))


async def test_registration_namespace_stripped_of_all_marks_is_put_back(
    project: str, people: People, c1: Knative, calm: Calm
) -> None:
    """Even with all our labels and annotations removed in one edit, a registration namespace is known as ours."""
    name = registration(project)
    await people.edit(NAMESPACE, name, "", ("replace", "/metadata/labels", {}), ("remove", "/metadata/annotations", None))
    await calm(c1)

    assert marks_of(project) == marks(await people.get(NAMESPACE, name))
    assert await people.condition(f"a1-{project}") is None


@pytest.mark.check("hpo-7")
async def test_denied_project_is_not_registered(c1: Knative, people: People, calm: Calm) -> None:
    """A project on the deny list gets no registration namespace, and its namespaces no label."""
    name = f"d1-{token()}"
    await people.namespace(name, "p-denied")
    await calm(c1)

    assert await people.admin.get(NAMESPACE, registration("p-denied")) is None
    assert PROJECT_ID not in labels_of(await people.get(NAMESPACE, name))


@pytest.mark.check("hpo-8")
async def test_system_project_is_left_alone(c1: Knative, people: People, calm: Calm) -> None:
    """A namespace of the system project is not touched, and the system project has no registration namespace."""
    name = f"s1-{token()}"
    made = await people.namespace(name, "p-system")
    await calm(c1)

    assert await people.admin.get(NAMESPACE, registration("p-system")) is None
    assert made["metadata"]["resourceVersion"] == (await people.get(NAMESPACE, name))["metadata"]["resourceVersion"]


@pytest.mark.check("hpo-9")
@pytest.mark.parametrize("name", ["kube-system", "cattle-helm-system"])
async def test_system_namespace_never_joins_a_project(c1: Knative, people: People, calm: Calm, name: str) -> None:
    """A system namespace with a project label is no member: nothing is registered for it and it gets no label of ours."""
    project = f"p-{token()}"
    before = labels_of(await people.get(NAMESPACE, name))
    await people.label(name, {LABEL: project})
    try:
        await calm(c1)

        assert await people.admin.get(NAMESPACE, registration(project)) is None
        assert labels_of(await people.get(NAMESPACE, name)) == {**before, LABEL: project}
    finally:
        await people.label(name, {LABEL: None})


@pytest.mark.check("hpo-22")
async def test_registration_namespace_is_hardened(project: str, people: People) -> None:
    """Pods in a registration namespace get no token and no traffic."""
    name = registration(project)
    account = await people.until(SERVICE_ACCOUNT, "default", name, lambda found: OPERATED in labels_of(found))
    policy = await people.until(NETWORK_POLICY, POLICY, name, lambda _: True)

    assert account["automountServiceAccountToken"] is False
    # The API server drops empty rule lists: no rule is "deny" for every policy type that is named.
    assert policy["spec"] == DENY_ALL
    assert policy["metadata"]["labels"] == {OPERATED: "true"}


@pytest.mark.check("hpo-23")
@pytest.mark.parametrize("drift", ["opened", "one direction", "label removed", "deleted"])
async def test_network_policy_is_restored(project: str, people: People, drift: str) -> None:
    """The policy that denies everything comes back after an edit and after its deletion."""
    where = (NETWORK_POLICY, POLICY, registration(project))
    before = await people.until(*where, lambda _: True)
    match drift:
        case "opened":
            await people.edit(*where, ("add", "/spec/ingress", [{}]), ("add", "/spec/egress", [{}]))
        case "one direction":
            await people.edit(*where, ("replace", "/spec/policyTypes", ["Ingress"]))
        case "label removed":
            await people.edit(*where, ("remove", "/metadata/labels", None))
        case "deleted":
            await people.delete(*where)

    await people.until(*where, lambda found: found["spec"] == DENY_ALL and labels_of(found) == labels_of(before))


@pytest.mark.check("hpo-23")
@pytest.mark.parametrize("drift", ["automount", "automount removed", "label removed", "deleted"])
async def test_service_account_is_restored(project: str, people: People, drift: str) -> None:
    """The default ServiceAccount gives no token again after an edit and after its deletion."""
    where = (SERVICE_ACCOUNT, "default", registration(project))
    await people.until(*where, lambda found: OPERATED in labels_of(found))
    match drift:
        case "automount":
            await people.edit(*where, ("replace", "/automountServiceAccountToken", True))
        case "automount removed":
            await people.edit(*where, ("remove", "/automountServiceAccountToken", None))
        case "label removed":
            await people.edit(*where, ("remove", "/metadata/labels", None), ("replace", "/automountServiceAccountToken", True))
        case "deleted":
            await people.delete(*where)

    await people.until(*where, lambda found: found.get("automountServiceAccountToken") is False and OPERATED in labels_of(found))


@pytest.mark.check("hpo-26")
async def test_foreign_namespace_is_never_hardened(c1: Knative, people: People, admin: Api, calm: Calm) -> None:
    """A namespace that a user labels as operated is not hardened: only what we made is."""
    project = f"p-{token()}"
    name = f"a1-{project}"
    await people.namespace(name, project, labels={OPERATED: "true"})
    await people.registered(project)
    await calm(c1)

    assert await admin.get(NETWORK_POLICY, POLICY, name) is None
    account = await admin.get(SERVICE_ACCOUNT, "default", name)
    assert account is None or "automountServiceAccountToken" not in account
    assert await snapshot(admin, [NETWORK_POLICY, CONFIG_MAP], containing=name, labels={OPERATED: "true"}) == {}


def test_reference_configuration_is_valid() -> None:
    """The configuration of the checks has only known keys."""
    from tenantry.model.config import Config

    assert Config.model_validate(C1).denied_project_ids == {"p-system", "p-denied"}
