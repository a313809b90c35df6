"""Values of a chart are data: templates in them, layers above them, and other projects' values.

A values author is the owner of a project. He asks for a chart that renders its values as templates, and real Helm installs it.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from attackers import Attackers, cluster_admin
from people import changed, registration, token
from releases import CONFIG, PROVISIONING, REGISTRATION, SYSTEM, Owners, cattle_of, values_of
from rights import AGGREGATION
from times import HELM_S, LEFT_TO_MAKE_WHOLE
from victims import asked

from tenantry.api import Api
from tenantry.api.errors import ApiError, Forbidden
from tenantry.local.control_plane import Lines, ensure_helm
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    HELM_CHART,
    HELM_CHART_CONFIG,
    HELM_RELEASE,
    NAMESPACE,
    PROJECT_HELM_CHART,
    SECRET,
    Kind,
    Object,
)
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE


TEMPLATING = "templating.example.com/v1"
TEMPLATES = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: rendered
data:
  text: {{ tpl (.Values.text | default "none") . | quote }}
{{- range .Values.extraObjects }}
---
{{ tpl (toYaml .) $ }}
{{- end }}
"""
"""A chart that renders what its values say, as many charts do."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(knative: Callable[..., Awaitable[Knative]], tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Knative]:
    """Projects, releases and rights, with a real Helm and a chart that renders values."""
    folder = tmp_path_factory.mktemp("templating")
    (folder / "templates").mkdir()
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: templating\nversion: 1.0.0\n")
    (folder / "templates" / "all.yaml").write_text(TEMPLATES)
    charts = [
        *CONFIG["helmProjectOperator"]["charts"],
        {"helmApiVersion": TEMPLATING, "releaseName": "tpl", "chart": str(folder)},
    ]
    config = changed(CONFIG, operator={"charts": charts, "helmController": {"enabled": True}})
    yield await knative(config, functions=(REGISTRATION, PROVISIONING, AGGREGATION), helm=ensure_helm(Lines()))


@pytest.fixture
def owners(admin: Api, system: Knative) -> Owners:
    return Owners(admin, HELM_S)


async def set_values(author: Api, name: str, namespace: str, **values: Any) -> str:
    """Change the values, as their author; returns the mark by which these are known."""
    mark = token()
    edit = {"op": "replace", "path": "/spec/values", "value": {**values, "mark": f"mark-{mark}"}}
    await author.json_patch(PROJECT_HELM_CHART, name, namespace, [edit])
    return f"mark-{mark}"


async def ended(owners: Owners, release: str, mark: str) -> bool:
    """Wait until Helm has tried these values; whether it deployed them."""

    def told(chart: Object) -> bool:
        current = (chart.get("status") or {}).get("observedGeneration") == chart["metadata"]["generation"]
        failed = find_condition(chart, "Failed") or {}
        tried = failed.get("status") == "True" or failed.get("reason") in ("Retrying", "Complete")
        return mark in chart["spec"]["valuesContent"] and current and tried

    chart = await owners.until(HELM_CHART, release, SYSTEM, told, within=HELM_S, what=f"Helm has tried {release}")
    return (find_condition(chart, "Failed") or {}).get("reason") == "Complete"


def is_refused(chart: Object) -> bool:
    """Whether a ProjectHelmChart tells its owner that rights are in the way."""
    return any(" is forbidden: " in each["message"] for each in (chart.get("status") or {}).get("conditions") or ())


@pytest.mark.check("a-50", without="rights-of-jobs")
async def test_templates_in_values_reach_nothing_outside(owners: Owners, attackers: Attackers) -> None:
    """A Secret that values look up is not shown, and objects that values bring for other namespaces and the cluster are not made;
    it is told on the ProjectHelmChart, and the release works again with values that stay inside."""
    project, other = await owners.project(), await owners.project()
    home, name = registration(project), f"v-{token()}"
    release, secret, hidden = f"{name}-tpl", f"hidden-{token()}", f"password-{token()}"
    author = await attackers.someone("owner", home, f"a1-{project}")
    data = {"password": base64.b64encode(hidden.encode()).decode()}
    await owners.admin.create(SECRET, obj(SECRET, secret, "kube-system", data=data))

    async def shown() -> str:
        return str((await owners.get(CONFIG_MAP, "rendered", release))["data"]["text"])

    async def refused(**values: Any) -> None:
        assert not await ended(owners, release, await set_values(author, name, home, **values))
        told = await owners.until(PROJECT_HELM_CHART, name, home, is_refused)
        assert not [text for text in (hidden, data["password"]) if text in str(told)]

    inside = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extra"}, "data": {"of": "{{ .Release.Name }}"}}
    await author.create(PROJECT_HELM_CHART, asked(name, home, {}, helmApiVersion=TEMPLATING))
    assert await ended(owners, release, await set_values(author, name, home, text="{{ .Release.Name }}", extraObjects=[inside]))
    assert await shown() == release
    assert (await owners.get(CONFIG_MAP, "extra", release))["data"] == {"of": release}

    call = f'(lookup "v1" "Secret" "kube-system" "{secret}")'
    await refused(text="{{ " + call + ".data | toJson }}")
    assert await shown() == release
    evil = f"evil-{name}"
    for kind, namespace, body in (
        (CLUSTER_ROLE_BINDING, "", cluster_admin(evil)),
        (CONFIG_MAP, f"a1-{other}", obj(CONFIG_MAP, evil, f"a1-{other}")),
        (NAMESPACE, "", obj(NAMESPACE, evil)),
    ):
        await refused(extraObjects=[body])
        assert await owners.admin.get(kind, evil, namespace) is None

    assert await ended(owners, release, await set_values(author, name, home, text="better"))
    assert await shown() == "better"


FORGED = {
    "maps": {"global": {"cattle": {"projectID": "p-evil", "projectNamespaces": ["kube-system"], "clusterId": "evil"}}},
    "a text": {"global": "evil"},
    "a text below": {"global": {"cattle": "evil"}},
    "lists": {"global": {"cattle": [{"projectID": "p-evil"}]}},
    "nothing": {"global": None},
    "nothing below": {"global": {"cattle": None}},
    "a selector": {
        "global": {
            "cattle": {
                "releaseProjectID": "p-evil",
                "rkeVersion": "evil",
                "projectNamespaceSelector": {"matchLabels": {"x": "evil"}, "matchExpressions": []},
            }
        }
    },
    "a selector of text": {"global": {"cattle": {"projectNamespaceSelector": "evil"}}},
    "dots": {"global.cattle.projectID": "p-evil", "targets": ["evil"]},
}
"""Values that forge what the layers above them say."""


@pytest.mark.check("a-51", without="layers-of-values")
@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
async def test_values_do_not_forge_the_layers_above(owners: Owners, attackers: Attackers, forged: dict[str, Any]) -> None:
    """Project, namespaces, selector and what the configuration overrides are theirs, whatever the values say and of what type."""
    project = await owners.project(members=2)
    home, name = registration(project), f"f-{token()}"
    author = await attackers.someone("owner", home)
    await author.create(PROJECT_HELM_CHART, asked(name, home, {"mine": "stays", **forged}))
    release = f"{name}-dummy"
    made = await owners.provisioned(release)
    values, cattle = values_of(made), cattle_of(made)

    assert values["mine"] == "stays"
    assert values["targets"] == ["file"]  # of the configuration's valuesOverride
    assert cattle["rkeVersion"] == "from-the-file"
    assert cattle["projectID"] == project
    assert cattle["clusterId"] == "c-test"
    assert cattle["releaseProjectID"] == "p-system"
    assert cattle["projectNamespaces"] == [f"a1-{project}", f"a2-{project}", release]
    assert cattle["projectNamespaceSelector"]["matchLabels"] == {"helm.cattle.io/projectId": project}
    assert made["spec"]["targetNamespace"] == release
    assert "evil" not in str(made["metadata"])
    assert "evil" not in str((await owners.get(NAMESPACE, release))["metadata"])


@pytest.mark.check("a-52", without="dashboards-of-one-namespace")
async def test_nobody_reads_another_projects_values(owners: Owners, attackers: Attackers, system: Knative) -> None:
    """An owner reads his own values, status and dashboard; a neighbour's ProjectHelmCharts, HelmCharts, HelmReleases, records and
    dashboards are refused by name and in lists, and his own status tells nothing of them."""
    mine, theirs = await owners.project(), await owners.project()
    hidden, releases = f"hidden-{token()}", dict[str, str]()
    authors = {each: await attackers.someone("owner", registration(each), f"a1-{each}") for each in (mine, theirs)}
    for project, author in authors.items():
        name = f"r-{project}"
        releases[project] = f"{name}-dummy"
        text = hidden if project == theirs else "own"
        await author.create(PROJECT_HELM_CHART, asked(name, registration(project), {"data": {"hello": text}}))
        await owners.provisioned(releases[project])
        await owners.dashboard("board", releases[project], releases[project], **{"a.json": f'{{"url": "{text}"}}'})
        await owners.told(
            name, project, "Deployed", holds=lambda found, text=text: text in str(found["status"]["dashboardValues"])
        )

    author, release = authors[mine], releases[theirs]
    tried: list[tuple[Kind, str, str]] = [
        (PROJECT_HELM_CHART, f"r-{theirs}", registration(theirs)),
        (HELM_CHART, release, SYSTEM),
        (HELM_CHART, releases[mine], SYSTEM),
        (HELM_CHART_CONFIG, release, SYSTEM),
        (HELM_RELEASE, release, SYSTEM),
        (CONFIG_MAP, "board", release),
        (SECRET, f"sh.helm.release.v1.{release}.v1", release),
        (SECRET, f"chart-values-{release}", SYSTEM),
        (CONFIG_MAP, f"chart-content-{release}", SYSTEM),
    ]
    for kind, name, namespace in tried:
        with pytest.raises(Forbidden):
            await author.get(kind, name, namespace)
        for place in (namespace, ""):
            with pytest.raises(Forbidden):
                await author.list(kind, place)
        with pytest.raises(Forbidden):
            await author.request("GET", kind.path(namespace), {"watch": "true", "timeoutSeconds": "1"})
        with pytest.raises(ApiError):
            await author.request("GET", kind.path(namespace, name) + "/status")

    own = await author.get(PROJECT_HELM_CHART, f"r-{mine}", registration(mine))
    assert own is not None
    assert own["status"]["dashboardValues"] == {"url": "own"}
    assert hidden not in str(own)
    assert theirs not in str(own)
