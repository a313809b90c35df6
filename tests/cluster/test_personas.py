"""Who may do what with charts and releases, by requests of such people (hpo-89)."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from people import registration, token
from releases import DUMMY, SYSTEM, Owners, values_of
from rights import cluster_role, user

from tenantry.local.control_plane import ControlPlane
from tenantry.model.kinds import (
    CONFIG_MAP,
    HELM_CHART,
    HELM_CHART_CONFIG,
    HELM_RELEASE,
    JOB,
    NAMESPACE,
    POD,
    PROJECT_HELM_CHART,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    Kind,
    Object,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj

LEVELS = {"owner": "admin", "member": "edit", "reader": "view"}
"""The people of a project and their ClusterRole in its registration namespace."""
JSON, MERGE = "application/json", "application/merge-patch+json"

pytestmark = pytest.mark.usefixtures("releasing")


class Person:
    """Somebody who asks the API server for something, with his own rights; who has authenticated him is not the subject."""

    def __init__(self, name: str, plane: ControlPlane, session: aiohttp.ClientSession) -> None:
        self.name = name
        self._url = plane.server_url
        self._ssl = ssl.create_default_context(cafile=str(plane.ca_file))
        self._session = session
        self._headers = {
            "Authorization": f"Bearer {plane.admin_token}",
            "Impersonate-User": name,
            "Impersonate-Group": "system:authenticated",
        }

    async def ask(self, method: str, path: str, body: Object | None = None) -> int:
        """The status of the answer to a request."""
        headers = {**self._headers, "Content-Type": MERGE if method == "PATCH" else JSON}
        asked: dict[str, Any] = {} if body is None else {"json": body}
        async with self._session.request(method, self._url + path, headers=headers, ssl=self._ssl, **asked) as response:
            return response.status

    async def tries(self, kind: Kind, name: str, namespace: str = "") -> dict[str, int]:
        """The statuses of everything that can be asked about an object of a kind."""
        every, one = kind.path(namespace), kind.path(namespace, name)
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name, "namespace": namespace}}
        requests = {
            "get": ("GET", one, None),
            "list": ("GET", every, None),
            "watch": ("GET", f"{every}?watch=true&timeoutSeconds=1", None),
            "create": ("POST", every, {**body, "metadata": {**body["metadata"], "name": f"{name}-more"}}),
            "update": ("PUT", one, body),
            "patch": ("PATCH", one, {"metadata": {"labels": {"by": "hand"}}}),
            "delete": ("DELETE", one, None),
            "deletecollection": ("DELETE", every, None),
        }
        return {verb: await self.ask(*asked) for verb, asked in requests.items()}


@pytest.fixture
async def project(owners: Owners) -> str:
    """A project with one namespace."""
    return await owners.project()


@pytest_asyncio.fixture(loop_scope="session")
async def persons(owners: Owners, project: str, control_plane: ControlPlane) -> AsyncIterator[dict[str, Person]]:
    """The people of the project, the owner of another one, and somebody of no project."""
    other = await owners.project()
    async with aiohttp.ClientSession(trust_env=False) as session:
        made = {who: Person(f"{who}-{token()}", control_plane, session) for who in (*LEVELS, "stranger", "nobody")}
        for who, level in LEVELS.items():
            await bind(owners, project, made[who], level)
        await bind(owners, other, made["stranger"], "admin")
        yield made


async def bind(owners: Owners, project: str, person: Person, level: str) -> None:
    """Give somebody a ClusterRole in a registration namespace, and wait until the API server knows."""
    home = registration(project)
    body = obj(ROLE_BINDING, person.name, home, roleRef=cluster_role(level), subjects=[user(person.name)])
    await owners.admin.create(ROLE_BINDING, body)
    what = f"{person.name} may read in {home}"
    await eventually(lambda: person.ask("GET", PROJECT_HELM_CHART.path(home)), lambda status: status == 200, within=10, what=what)


@pytest.mark.check("hpo-89")
async def test_owners_ask_for_charts_and_members_read_them(owners: Owners, project: str, persons: dict[str, Person]) -> None:
    """What an owner makes, changes and deletes is done; members and readers see it and change nothing; others do not see it."""
    name, home = f"demo-{project}", registration(project)
    release = f"{name}-dummy"
    owner, every, one = persons["owner"], PROJECT_HELM_CHART.path(home), PROJECT_HELM_CHART.path(home, name)

    def asked(named: str, number: int) -> Object:
        return obj(PROJECT_HELM_CHART, named, home, spec={"helmApiVersion": DUMMY, "values": {"number": number}})

    assert await owner.ask("POST", every, asked(name, 1)) == 201
    await owners.provisioned(release, holds=lambda found: values_of(found)["number"] == 1)
    assert await owner.ask("PATCH", one, {"spec": {"values": {"number": 2}}}) == 200
    await owners.provisioned(release, holds=lambda found: values_of(found)["number"] == 2)

    async def replaced() -> bool:
        live = await owners.get(PROJECT_HELM_CHART, name, home)
        status = await owner.ask("PUT", one, {**asked(name, 3), "metadata": live["metadata"]})
        assert status in (200, 409), status  # 409: the functions wrote meanwhile
        return status == 200

    await eventually(replaced, within=10)
    await owners.provisioned(release, holds=lambda found: values_of(found)["number"] == 3)
    before = await owners.get(PROJECT_HELM_CHART, name, home)

    reads = {"get": 200, "list": 200, "watch": 200}
    refused = dict.fromkeys(("create", "update", "patch", "delete", "deletecollection"), 403)
    for who in ("member", "reader"):
        assert await persons[who].tries(PROJECT_HELM_CHART, name, home) == reads | refused, who
    for who in ("stranger", "nobody"):
        assert await persons[who].tries(PROJECT_HELM_CHART, name, home) == dict.fromkeys(reads, 403) | refused, who
    for who, person in persons.items():  # what is said about a chart is the functions' to say
        assert await person.ask("PATCH", f"{one}/status", {"status": {"status": "Deployed"}}) == 403, who
    assert (await owners.get(PROJECT_HELM_CHART, name, home))["spec"] == before["spec"]

    assert {verb: await owner.ask("GET", path) for verb, path in (("get", one), ("list", every))} == {"get": 200, "list": 200}
    assert await owner.ask("GET", f"{every}?watch=true&timeoutSeconds=1") == 200
    assert await owner.ask("DELETE", one) == 200
    await owners.taken_away(release)
    await owners.away(PROJECT_HELM_CHART, name, home)
    assert await owner.ask("POST", every, asked(name, 4)) == 201
    assert await owner.ask("DELETE", every) == 200
    await owners.away(PROJECT_HELM_CHART, name, home)


@pytest.mark.check("hpo-89")
async def test_nobody_of_a_project_touches_what_runs_its_releases(
    owners: Owners, project: str, persons: dict[str, Person]
) -> None:
    """HelmCharts, their configurations and HelmReleases, wherever, and everything in the system namespace are refused to them."""
    name = f"demo-{project}"
    release = f"{name}-dummy"
    await owners.ask(name, project)
    await owners.provisioned(release)
    before = [await owners.get(kind, release, SYSTEM) for kind in (HELM_CHART, HELM_RELEASE)]

    places = [
        (kind, place) for kind in (HELM_CHART, HELM_CHART_CONFIG, HELM_RELEASE) for place in (SYSTEM, registration(project))
    ]
    places += [(kind, SYSTEM) for kind in (CONFIG_MAP, SECRET, SERVICE_ACCOUNT, POD, JOB, ROLE_BINDING, PROJECT_HELM_CHART)]
    for who, person in persons.items():
        for kind, place in places:
            tried = await person.tries(kind, release, place)
            assert set(tried.values()) == {403}, f"{who}, {kind.kind} in {place}: {tried}"
        for verb, body in (("GET", None), ("PATCH", {"metadata": {"labels": {"by": "hand"}}}), ("DELETE", None)):
            assert await person.ask(verb, NAMESPACE.path("", SYSTEM), body) == 403, f"{who}: {verb} of the system namespace"
        account = f"{SERVICE_ACCOUNT.path(SYSTEM, f'helm-{release}')}/token"
        assert await person.ask("POST", account, {"spec": {}}) == 403, f"{who}: a token of the account that runs Helm"
    assert [await owners.get(kind, release, SYSTEM) for kind in (HELM_CHART, HELM_RELEASE)] == before
