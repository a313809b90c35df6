"""Guards: labels, names and marks give nobody anything who has no right to write them, and what is in use is not deleted.

The labeller may write every namespace in every way that the API has, and has no other right; the functions run.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass

import pytest
import pytest_asyncio
from attackers import Attackers, refused
from people import LABEL, OPERATED, ORPHANED, PROJECT_ID, REGISTERED, registration, token
from releases import Owners
from times import LEFT_TO_MAKE_WHOLE, NAMESPACE_GONE_S
from writing import WAYS, create, with_part

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, PROJECT_HELM_CHART, Object, annotations_of, is_terminating, labels_of
from tenantry.model.names import ADOPT, ALLOW_DELETION, PROJECT_CHART, PROJECT_LABEL_ACCEPTED
from tenantry.testing import eventually
from tenantry.testing.settling import settle

GUARD = "tenantry-guard-namespaces"
JOIN, WRITE = "join on projects.tenantry.dev", "write on marks.tenantry.dev"
SUBRESOURCES = {"": WAYS, "status": WAYS, "finalize": {"put": WAYS["put"]}}
"""The ways that lead to the metadata of a namespace; `finalize` takes whole objects only."""


def joining(*projects: str) -> Object:
    return {"apiGroups": ["tenantry.dev"], "resources": ["projects"], "resourceNames": list(projects), "verbs": ["join"]}


def body(name: str, **metadata: object) -> Object:
    named = {"generateName": name} if name.endswith("-") else {"name": name}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {**named, **metadata}}


@dataclass(frozen=True)
class Scene:
    """A project with a release, and somebody who may label."""

    owners: Owners
    labeller: Api
    project: str
    release: str
    knative: Knative

    @property
    def member(self) -> str:
        """The project's one namespace."""
        return f"a1-{self.project}"

    @property
    def home(self) -> str:
        """Its registration namespace."""
        return registration(self.project)

    async def refused(self, work: Awaitable[object], *words: str) -> None:
        """The API server refuses, and says these words."""
        message = await refused(work, *words)
        assert self.project not in message.partition("denied request: ")[2]

    async def all_is_as_it_was(self) -> None:
        """The project has its member, its release and living namespaces, and goes on: another member is seen."""
        await settle(self.knative, self.owners.admin)
        assert labels_of(await self.owners.get(NAMESPACE, self.member)) == {
            LABEL: self.project,
            PROJECT_ID: self.project,
            "kubernetes.io/metadata.name": self.member,
        }
        for name in (self.home, self.release):
            found = await self.owners.get(NAMESPACE, name)
            assert labels_of(found)[PROJECT_ID] == self.project
            assert OPERATED in labels_of(found)
            assert ORPHANED not in labels_of(found)
            assert ADOPT not in annotations_of(found)
            assert not is_terminating(found)
        chart = await self.owners.provisioned(self.release)
        assert f"- {self.member}\n" in chart["spec"]["valuesContent"]
        another = f"more-{token()}"
        await self.owners.namespace(another, self.project)
        await self.owners.provisioned(self.release, holds=lambda found: f"- {another}\n" in found["spec"]["valuesContent"])


@pytest_asyncio.fixture(loop_scope="session")
async def scene(system: Knative, owners: Owners, attackers: Attackers) -> Scene:
    project = await owners.project()
    name = f"shop-{token()}"
    await owners.ask(name, project)
    await owners.provisioned(f"{name}-dummy")
    await owners.told(name, project, "WaitingForDashboardValues")
    return Scene(owners, await attackers.someone("labeller"), project, f"{name}-dummy", system)


# -- projects ------------------------------------------------------------------------------------------------


@pytest.mark.check("a-33", without=GUARD)
async def test_a_labeller_puts_nothing_into_a_project(scene: Scene) -> None:
    """A namespace gets another project's label neither when it is made nor later, in no way that the API has; told which right
    it takes. Labels that are nobody's he writes as before."""
    theirs = {LABEL: scene.project}
    for name in (f"evil-{token()}", f"evil-{token()}-"):
        await scene.refused(create(scene.labeller, NAMESPACE, body(name, labels=theirs)), f"metadata.labels[{LABEL}]", JOIN)
    applied = body(f"evil-{token()}", labels=theirs)
    await scene.refused(scene.labeller.apply(NAMESPACE, applied), f"metadata.labels[{LABEL}]", JOIN)

    mine = await create(scene.labeller, NAMESPACE, body(f"evil-{token()}", labels={"team": "x"}))
    for subresource, ways in SUBRESOURCES.items():
        for way in ways.values():
            labelled = with_part(mine, "labels", LABEL, scene.project)
            await scene.refused(way(scene.labeller, NAMESPACE, mine, labelled, subresource), f"metadata.labels[{LABEL}]", JOIN)
    for number, way in enumerate(WAYS.values()):
        before = await scene.owners.get(NAMESPACE, mine["metadata"]["name"])
        await way(scene.labeller, NAMESPACE, before, with_part(before, "labels", "team", str(number)))
    found = await scene.owners.get(NAMESPACE, mine["metadata"]["name"])
    assert labels_of(found) == {"team": str(len(WAYS) - 1), "kubernetes.io/metadata.name": mine["metadata"]["name"]}
    chart = await scene.owners.provisioned(scene.release)
    assert mine["metadata"]["name"] not in chart["spec"]["valuesContent"]
    await scene.all_is_as_it_was()


@pytest.mark.check("a-33", without=GUARD)
async def test_a_labeller_takes_nothing_out_of_a_project(scene: Scene, attackers: Attackers) -> None:
    """A project's namespace is neither taken out nor moved, also by one who may join the other project; other labels of it he
    writes."""
    other = f"p-{token()}"
    await attackers.allow(scene.labeller, joining(other))
    before = await scene.owners.get(NAMESPACE, scene.member)
    for value in (None, "", other):
        for subresource, ways in SUBRESOURCES.items():
            for name, way in ways.items():
                if value is None and name == "apply":
                    continue  # an apply gives up only what is its manager's
                after = with_part(before, "labels", LABEL, value)
                await scene.refused(
                    way(scene.labeller, NAMESPACE, before, after, subresource), f"metadata.labels[{LABEL}]", JOIN, "that it is in"
                )
    await scene.all_is_as_it_was()
    before = await scene.owners.get(NAMESPACE, scene.member)
    await WAYS["merge"](scene.labeller, NAMESPACE, before, with_part(before, "labels", "team", "x"))
    assert labels_of(await scene.owners.get(NAMESPACE, scene.member))["team"] == "x"


@pytest.mark.check("a-33")
async def test_who_holds_the_right_joins_leaves_and_moves(scene: Scene, attackers: Attackers) -> None:
    """With `join` on both projects, by name, namespaces come, move and go; an administrator needs nobody's word."""
    other = await scene.owners.project()
    await attackers.allow(scene.labeller, joining(scene.project, other))
    mine = f"mine-{token()}"
    await create(scene.labeller, NAMESPACE, body(mine, labels={LABEL: scene.project}))
    await scene.owners.provisioned(scene.release, holds=lambda found: f"- {mine}\n" in found["spec"]["valuesContent"])
    for value in (other, None, scene.project):
        before = await scene.owners.get(NAMESPACE, mine)
        await WAYS["merge"](scene.labeller, NAMESPACE, before, with_part(before, "labels", LABEL, value))
        await scene.owners.until(
            NAMESPACE, mine, "", lambda found, value=value: labels_of(found).get(PROJECT_ID) in (value, other)
        )
    await scene.owners.label(mine, {LABEL: other})
    await scene.owners.until(NAMESPACE, mine, "", lambda found: labels_of(found).get(PROJECT_ID) == other)


# -- marks ---------------------------------------------------------------------------------------------------

MARKS = [
    *(("labels", key) for key in (OPERATED, ORPHANED, PROJECT_ID)),
    *(("annotations", key) for key in (ADOPT, PROJECT_CHART, ALLOW_DELETION, PROJECT_LABEL_ACCEPTED)),
]


@pytest.mark.check("a-34", without=GUARD)
@pytest.mark.parametrize(("part", "key"), MARKS, ids=[key.rpartition("/")[2] for _, key in MARKS])
async def test_a_labeller_writes_no_mark_of_ours(scene: Scene, part: str, key: str) -> None:
    """Our marks come onto no new namespace and no old one, change on none and go from none, in no way that the API has."""
    # An adoption by a Paas two policies refuse: which of them is heard is chance.
    told = (f"metadata.{part}[{key}]",) if key == ADOPT else (f"metadata.{part}[{key}]", WRITE)
    for name in (f"evil-{token()}", f"evil-{token()}-"):
        await scene.refused(create(scene.labeller, NAMESPACE, body(name, **{part: {key: "true"}})), *told)
    mine = await create(scene.labeller, NAMESPACE, body(f"evil-{token()}", labels={"team": "x"}))
    targets = [await scene.owners.get(NAMESPACE, name) for name in (scene.member, scene.home, scene.release)]
    for before in (mine, *targets):
        present = (before["metadata"].get(part) or {}).get(key)
        for value in ("other", "", *([None] if present is not None else [])):
            after = with_part(before, part, key, value)
            for subresource, ways in SUBRESOURCES.items():
                for name, way in ways.items():
                    if value is None and name == "apply":
                        continue
                    await scene.refused(way(scene.labeller, NAMESPACE, before, after, subresource), *told)
    await scene.all_is_as_it_was()


@pytest.mark.check("a-34", without=GUARD)
async def test_a_labeller_says_nothing_in_our_name(scene: Scene) -> None:
    """Our condition is not written, on one's own namespace or another's; what other controllers say in theirs is."""
    mine = await create(scene.labeller, NAMESPACE, body(f"evil-{token()}"))
    for name in (mine["metadata"]["name"], scene.member):
        before = await scene.owners.get(NAMESPACE, name)
        for type_ in (REGISTERED, "example.com/Other"):
            said = {"type": type_, "status": "False", "reason": "Evil", "message": "evil", "lastTransitionTime": None}
            for way in WAYS.values():
                before = await scene.owners.get(NAMESPACE, name)
                after = {**with_part(before, "labels", "team", None), "status": {**before["status"], "conditions": [said]}}
                after["metadata"]["labels"] = before["metadata"]["labels"]
                written = way(scene.labeller, NAMESPACE, before, after, "status")
                if type_ == REGISTERED:
                    await scene.refused(written, f"status.conditions[{REGISTERED}]", WRITE)
                else:
                    await written
    await scene.all_is_as_it_was()


@pytest.mark.check("a-30", without=GUARD)
@pytest.mark.check("a-31", without=GUARD)
async def test_a_labeller_forges_no_proof_that_a_namespace_is_ours(scene: Scene) -> None:
    """By our field manager's name, or written by hand, nobody gets to own what shows that a function made a namespace: not when
    it is made, not later. The name of a registration namespace is not to be had either."""
    proof = {"f:metadata": {"f:labels": {"f:kubernetes.io/metadata.name": {}}}}
    taken = f"p-{token()}"
    for manager in ("tenantry-release-provisioning", "tenantry-namespace-registration"):
        told = (f"metadata.managedFields[{manager}]", WRITE)
        forged = {"manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": proof}
        forged["time"] = "2026-01-01T00:00:00Z"
        await scene.refused(create(scene.labeller, NAMESPACE, body(f"evil-{token()}-dummy"), manager), *told)
        name = f"evil-{token()}-dummy"
        applied = body(name, labels={"kubernetes.io/metadata.name": name})
        await scene.refused(scene.labeller.apply(NAMESPACE, applied, manager=manager), *told)
        mine = await create(scene.labeller, NAMESPACE, body(f"evil-{token()}-dummy", managedFields=[forged]))
        name = mine["metadata"]["name"]
        managers = [each["manager"] for each in mine["metadata"]["managedFields"]]
        assert manager not in managers  # the API server itself leaves it out
        await scene.refused(
            scene.labeller.apply(NAMESPACE, body(name, labels={"kubernetes.io/metadata.name": name}), manager=manager), *told
        )
        after = with_part(mine, "labels", "team", "x")
        after["metadata"]["managedFields"] = [*mine["metadata"]["managedFields"], forged]
        # An apply may not name any, and through subresources they are left as they are.
        for named in ("put", "merge", "json-patch"):
            await scene.refused(WAYS[named](scene.labeller, NAMESPACE, mine, after), *told)
        for name in (registration(taken), "cattle-project-"):
            for by in ("", manager):
                await scene.refused(create(scene.labeller, NAMESPACE, body(name), by), "metadata.name", JOIN)
        before = await scene.owners.get(NAMESPACE, scene.release)
        emptied = with_part(before, "labels", "team", None)
        emptied["metadata"] |= {"managedFields": [{}], "resourceVersion": before["metadata"]["resourceVersion"]}
        await scene.refused(WAYS["put"](scene.labeller, NAMESPACE, before, emptied), "metadata.managedFields", WRITE)
    assert await scene.owners.admin.get(NAMESPACE, registration(taken)) is None
    await scene.owners.namespace(f"a1-{taken}", taken)
    await scene.owners.registered(taken)
    await scene.all_is_as_it_was()


# -- deletion ------------------------------------------------------------------------------------------------


async def deletable(attackers: Attackers, *namespaces: str) -> Api:
    """An owner of namespaces who may delete them, too."""
    owner = await attackers.someone("owner", *namespaces)
    rule = {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": list(namespaces), "verbs": ["delete"]}
    await attackers.allow(owner, rule)
    return owner


@pytest.mark.check("hpo-87", without=GUARD)
async def test_namespaces_of_a_living_project_are_not_deleted(scene: Scene, admin: Api, attackers: Attackers) -> None:
    """Registration and release namespace stay, whoever asks and however; the message names what would allow it; all in them
    stays, and both go when the release and the project have ended."""
    owner = await deletable(attackers, scene.home, scene.release)
    for name in (scene.home, scene.release):
        for who in (owner, admin):
            for propagation in ("Background", "Foreground", "Orphan"):
                deletion = who.delete(NAMESPACE, name, propagation=propagation)
                await scene.refused(deletion, "is in use", ORPHANED, f"{ALLOW_DELETION}=true", WRITE)
    await scene.all_is_as_it_was()
    assert (await admin.list(CONFIG_MAP, scene.home)).items

    name = scene.release.removesuffix("-dummy")
    await owner.delete(PROJECT_HELM_CHART, name, scene.home)
    await scene.owners.taken_away(scene.release)
    await scene.owners.until(NAMESPACE, scene.release, "", lambda found: ORPHANED in labels_of(found))
    await owner.delete(NAMESPACE, scene.release)
    await scene.owners.gone(scene.release)
    await scene.refused(owner.delete(NAMESPACE, scene.home), "is in use")
    for each in (await admin.list(NAMESPACE, label_selector=f"{LABEL}={scene.project}")).items:
        if each["metadata"]["name"] != scene.home:
            await scene.owners.label(each["metadata"]["name"], {LABEL: None})
    await scene.owners.orphaned(scene.project)
    await owner.delete(NAMESPACE, scene.home)
    await scene.owners.gone(scene.home)


@pytest.mark.check("hpo-87", without=GUARD)
async def test_an_administrator_deletes_on_purpose(scene: Scene, admin: Api, attackers: Attackers) -> None:
    """What the message says helps: with the annotation, which an owner cannot set, a namespace in use goes and is made again."""
    owner = await deletable(attackers, scene.release)
    before = await scene.owners.get(NAMESPACE, scene.release)
    await attackers.allow(
        owner, {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": [scene.release], "verbs": ["patch"]}
    )
    allowed = with_part(before, "annotations", ALLOW_DELETION, "true")
    await scene.refused(WAYS["merge"](owner, NAMESPACE, before, allowed), f"metadata.annotations[{ALLOW_DELETION}]", WRITE)

    await scene.owners.label(scene.release, {ALLOW_DELETION: "true"}, "annotations")
    await owner.delete(NAMESPACE, scene.release)
    await scene.owners.gone(scene.release, before["metadata"]["uid"])
    await scene.owners.provisioned(scene.release)
    await scene.refused(admin.delete(NAMESPACE, scene.release), "is in use")
    await scene.all_is_as_it_was()


@pytest.mark.check("hpo-87", without=GUARD)
async def test_a_garbage_collector_deletes_no_namespace_in_use(scene: Scene, admin: Api) -> None:
    """An owner reference that somebody puts on a release namespace ends nothing when its owner goes, unlike on one of nobody."""
    owner = await create(scene.labeller, NAMESPACE, body(f"evil-{token()}"))
    free = await create(scene.labeller, NAMESPACE, body(f"free-{token()}"))
    before = await scene.owners.get(NAMESPACE, scene.release)
    reference = {"apiVersion": "v1", "kind": "Namespace", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    for name in (scene.release, free["metadata"]["name"]):
        await scene.labeller.json_patch(
            NAMESPACE, name, "", [{"op": "add", "path": "/metadata/ownerReferences", "value": [reference]}]
        )
    await admin.delete(NAMESPACE, owner["metadata"]["name"])

    async def collected() -> bool:
        return await admin.get(NAMESPACE, free["metadata"]["name"]) is None

    await eventually(collected, within=2 * NAMESPACE_GONE_S, what="the garbage collector ends what is nobody's")
    found = await scene.owners.get(NAMESPACE, scene.release)
    assert (found["metadata"]["uid"], is_terminating(found)) == (before["metadata"]["uid"], False)
    await scene.all_is_as_it_was()


@LEFT_TO_MAKE_WHOLE
async def test_controllers_end_namespaces_with_marks(scene: Scene, admin: Api, attackers: Attackers) -> None:
    """A namespace with marks and a release inside goes to its end: the namespace controller's writes are nobody's marks."""
    await scene.owners.delete(NAMESPACE, scene.home)
    await scene.owners.gone(scene.home, (await scene.owners.get(NAMESPACE, scene.home))["metadata"]["uid"])
    await scene.owners.taken_away(scene.release)
    await scene.owners.registered(scene.project)
