"""The story of a project, step by step: what a person types, what is done in its place, and what came of it."""

from __future__ import annotations

import asyncio
import json
import string
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click
import yaml

from tenantry.api import Api
from tenantry.api.review import reviewed
from tenantry.kit.demo.watching import Happening, Watching
from tenantry.local.deployment import deployment_folder, documents
from tenantry.model.conditions import find_condition
from tenantry.model.config import Config
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CONFIG_MAP,
    HELM_RELEASE,
    NAMESPACE,
    PROJECT_HELM_CHART,
    ROLE,
    ROLE_BINDING,
    SECRET,
    Key,
    Object,
    key_of,
    labels_of,
    object_of,
)
from tenantry.testing.awaiting import eventually

MANAGER = "demo"
"""The field manager of what a person does here; those of functions begin with ``tenantry-``."""
LIMIT_S = 60.0
"""Longer than any step takes on a slow machine."""
_QUIET_S = 0.3
_SHOWN = 12
_RBAC = "rbac.authorization.k8s.io"
_ROLE_LABEL = "helm.cattle.io/project-helm-chart-role"
_EXAMPLE = "docs/examples/monitored-app"


class Stuck(Exception):
    """What should follow from a step does not; the message says what to look at."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its title, what a person would type, what is done, and what it waits for."""

    title: str
    commands: Sequence[str]
    act: Callable[[], Awaitable[Sequence[Key]]]
    """Does it; returns which objects the person wrote."""
    done: Callable[[], Awaitable[str]]
    """What it has come to, in a sentence; empty as long as it has not."""


async def act(api: Api, config: Config, kubeconfig: Path, *, wait_for_enter: bool) -> None:
    """Act it out under a configuration, with its first chart, and print it.

    Raises:
        Stuck: a step has no effect within `LIMIT_S`.
    """
    names = await Names.free(api)
    story = Story(api, names, config)
    click.echo(f"The story of project {names.project}, in the cluster of {kubeconfig}")
    async with Watching(api) as watching:
        for number, make in enumerate(story.steps(), 1):
            step = await make()
            if step is None:
                click.echo(f"\nThe rest of the story needs a chart with a Role for viewers, such as {_EXAMPLE}.")
                break
            if wait_for_enter:
                click.echo()
                await asyncio.to_thread(click.prompt, "Enter", default="", show_default=False, prompt_suffix=" ")
            await _one(number, step, watching)
    click.echo(f"\nAll of it is there to be looked at:\n\n  export KUBECONFIG={kubeconfig}")
    click.echo(f"  kubectl get namespaces -l {config.project_label}={names.project}")
    click.echo(f"  kubectl get projecthelmcharts,rolebindings -n {names.home}")
    click.echo(f"  tenantry lock show {names.release}")


async def _one(number: int, step: Step, watching: Watching) -> None:
    click.secho(f"\n{number}. {step.title}", bold=True)
    for command in step.commands:
        for line, text in enumerate(command.splitlines()):
            click.echo(f"   {'$' if line == 0 else ' '} {text}")
    began = time.monotonic()
    own = await step.act()
    result = ""

    async def look() -> str:
        nonlocal result
        result = await step.done()
        return result

    with suppress(AssertionError):
        await eventually(look, within=LIMIT_S)
    if not result:
        seen = [_line(each, began) for each in watching.since(began, own)] or ["     nothing happened"]
        raise Stuck(
            "\n".join(seen) + f"\n\nThis is not done after {LIMIT_S:g} s. Is Tenantry at work on this cluster? What functions "
            "write and complain about is in the terminal of `tenantry up`; `tenantry dead-letters` lists what they gave up."
        )
    took = time.monotonic() - began

    async def quiet() -> bool:
        return time.monotonic() - max(watching.last, began) > _QUIET_S

    with suppress(AssertionError):
        await eventually(quiet, within=5 * _QUIET_S)
    happened = watching.since(began, own)
    for each in happened[:_SHOWN]:
        click.echo(_line(each, began))
    if more := happened[_SHOWN:]:
        click.echo(f"             and {len(more)} more by {', '.join(sorted({each.by for each in more}))}")
    click.secho(f"   {took * 1000:6.0f} ms  {result}", fg="green")


def _line(happening: Happening, began: float) -> str:
    key = happening.key
    name = f"{key.kind} {f'{key.namespace}/' if key.namespace else ''}{key.name}"
    return f"   {(happening.at - began) * 1000:6.0f} ms  {happening.what} {name}  {click.style(f'by {happening.by}', dim=True)}"


@dataclass(slots=True)
class Names:
    """Of one telling: nobody else has them."""

    team: str
    project: str
    chart: str
    person: str = "alice"
    release: str = ""
    """Called after the ProjectHelmChart and the chart's `releaseName`."""

    @property
    def home(self) -> str:
        """The registration namespace."""
        return f"cattle-project-{self.project}"

    @classmethod
    async def free(cls, api: Api) -> Names:
        """Names of the first letter that no earlier telling took."""
        taken = {each["metadata"]["name"] for each in (await api.list(NAMESPACE, metadata_only=True)).items}
        for letter in string.ascii_lowercase:
            found = cls(f"team-{letter}", f"p-{letter}", "demo" if letter == "a" else f"demo-{letter}")
            if not {found.team, found.home} & taken:
                return found
        raise Stuck("the story was told for every letter here: `tenantry up --fresh` begins with an empty cluster")


class Story:
    """What happens in it.  Each step is made when those before it are done: it follows from what they came to."""

    def __init__(self, api: Api, names: Names, config: Config) -> None:
        self._api = api
        self._names = names
        self._label = config.project_label
        self._system = config.helm_project_operator.system_namespace
        self._chart = config.helm_project_operator.charts[0]
        self._dashboard: Object = {}

    def steps(self) -> list[Callable[[], Awaitable[Step | None]]]:
        """In order; none where the chart does not bring what it needs."""
        return [self._joins, self._asks, self._gives, self._allows, self._changes, self._takes]

    async def _joins(self) -> Step:
        team, project, home = self._names.team, self._names.project, self._names.home

        async def do() -> list[Key]:
            made = await self._api.create(NAMESPACE, object_of(NAMESPACE, {"name": team}))
            await self._patch(f"/api/v1/namespaces/{team}", {"metadata": {"labels": {self._label: project}}})
            return [key_of(made)]

        async def done() -> str:
            if await self._api.get(CONFIG_MAP, self._chart.config_map_name, home) is None:
                return ""
            return f"project {project} has its registration namespace {home}, for its people"

        commands = [f"kubectl create namespace {team}", f"kubectl label namespace {team} {self._label}={project}"]
        return Step("A namespace joins a project", commands, do, done)

    async def _asks(self) -> Step:
        name, home = self._names.chart, self._names.home
        self._names.release = f"{name}-{self._chart.release_name}"
        spec = {"helmApiVersion": self._chart.helm_api_version}
        asked = object_of(PROJECT_HELM_CHART, {"name": name, "namespace": home}, spec=spec)

        async def do() -> list[Key]:
            return [key_of(await self._api.create(PROJECT_HELM_CHART, asked))]

        async def done() -> str:
            live = await self._api.get(PROJECT_HELM_CHART, name, home) or {}
            release = await self._api.get(HELM_RELEASE, self._names.release, self._system)
            if (live.get("status") or {}).get("status") != "Deployed" or release is None:
                return ""
            namespace = release["spec"]["release"]["namespace"]
            # A project's chart is Deployed as soon as its dashboards are there: Helm may have more to install.
            installed = f"owner=helm,name={self._names.release},status=deployed"
            if not (await self._api.list(SECRET, namespace, label_selector=installed, metadata_only=True)).items:
                return ""
            self._dashboard = await self._brought(namespace)
            return f"Helm has installed {self._names.release}, with the namespaces of the project in its values"

        return Step(
            "The project asks for a chart",
            [f"kubectl create -f - <<'END'\n{yaml.safe_dump(asked, sort_keys=False)}END"],
            do,
            done,
        )

    async def _gives(self) -> Step | None:
        if not self._dashboard:
            return None
        person, home = self._names.person, self._names.home
        binding = object_of(
            ROLE_BINDING,
            {"name": person, "namespace": home},
            roleRef={"apiGroup": _RBAC, "kind": CLUSTER_ROLE.kind, "name": "view"},
            subjects=[{"apiGroup": _RBAC, "kind": "User", "name": person}],
        )

        async def do() -> list[Key]:
            return [key_of(await self._api.create(ROLE_BINDING, binding))]

        async def done() -> str:
            if not await self._may("get") or await self._may("update"):
                return ""
            return f"{person} may look at what the chart brought, and not change it"

        commands = [f"kubectl create rolebinding {person} --clusterrole=view --user={person} -n {home}", self._asking()]
        return Step("Somebody becomes a viewer of the project", commands, do, done)

    async def _allows(self) -> Step:
        folder = deployment_folder("knative") / "lockable-kinds"

        async def do() -> list[Key]:
            return [key_of(await self._api.apply(CLUSTER_ROLE, each)) for each in documents(folder)]

        async def done() -> str:
            live = await self._api.get(HELM_RELEASE, self._names.release, self._system) or {}
            if any((find_condition(live, kind) or {}).get("status") != "True" for kind in ("Locked", "Complete")):
                return ""
            return f"{self._names.release} is locked: it stays as Helm left it"

        return Step("An administrator says what locks may write", [f"kubectl apply --server-side -k {folder}"], do, done)

    async def _changes(self) -> Step:
        metadata, data = self._dashboard["metadata"], self._dashboard["data"]
        name, namespace = metadata["name"], metadata["namespace"]
        change = {"data": dict.fromkeys(data, "broken")}

        async def do() -> list[Key]:
            await self._patch(CONFIG_MAP.path(namespace, name), change)
            return []

        async def done() -> str:
            live = await self._api.get(CONFIG_MAP, name, namespace)
            return f"{name} is as the chart has it" if live is not None and live["data"] == data else ""

        command = f"kubectl patch configmap {name} -n {namespace} --type merge -p '{json.dumps(change)}'"
        return Step("Somebody breaks what the chart brought", [command], do, done)

    async def _takes(self) -> Step:
        person, home = self._names.person, self._names.home

        async def do() -> list[Key]:
            await self._api.delete(ROLE_BINDING, person, home)
            return [Key(ROLE_BINDING.api_version, ROLE_BINDING.kind, home, person)]

        async def done() -> str:
            return "" if await self._may("get") else f"{person} has no right in {self._names.release} any more"

        commands = [f"kubectl delete rolebinding {person} -n {home}", self._asking()]
        return Step("She leaves the project", commands, do, done)

    async def _brought(self, namespace: str) -> Object:
        """A ConfigMap of the chart, with the label by which Helm knows its own, if there is a Role for viewers, too."""
        if not (await self._api.list(ROLE, namespace, label_selector=_ROLE_LABEL)).items:
            return {}
        maps = (await self._api.list(CONFIG_MAP, namespace)).items
        return next((each for each in maps if labels_of(each).get("app.kubernetes.io/managed-by") == "Helm"), {})

    def _asking(self) -> str:
        metadata = self._dashboard["metadata"]
        return f"kubectl auth can-i get configmap/{metadata['name']} -n {metadata['namespace']} --as {self._names.person}"

    async def _may(self, verb: str) -> bool:
        metadata = self._dashboard["metadata"]
        attributes = {
            "verb": verb,
            "resource": CONFIG_MAP.plural,
            "name": metadata["name"],
            "namespace": metadata["namespace"],
        }
        spec = {"user": self._names.person, "groups": ["system:authenticated"], "resourceAttributes": attributes}
        return await reviewed(self._api, spec)

    async def _patch(self, path: str, change: Object) -> None:
        await self._api.request("PATCH", path, {"fieldManager": MANAGER}, change, content_type="application/merge-patch+json")
