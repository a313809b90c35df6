"""A cluster in which every unit that makes bindings has made some, beside those of people; and questions about it."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from flux_crds import current, install_flux
from flux_declaring import Tenants
from operators import Operators
from paasing import Paasing, example, make_world
from people import C1, registration, token
from releases import Owners
from rights import AGGREGATE_FROM, RBAC, ROLE_OF, cluster_role, group, user
from scoping import Scoping, role
from times import START_S

from tenantry.api import Api
from tenantry.api.errors import ConflictError
from tenantry.api.served import served_resources
from tenantry.cli.explain.resources import find
from tenantry.cli.explain.subjects import asked_about
from tenantry.local.followed import stand_in
from tenantry.local.install import until_served
from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CLUSTER_SERVICE_VERSION,
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    OPERATOR_GROUP,
    ROLE,
    ROLE_BINDING,
    Kind,
    Object,
    labels_of,
)
from tenantry.model.names import SCOPE_INSTANCE_UID
from tenantry.model.rbac import VERBS, Question
from tenantry.testing import eventually
from tenantry.testing.objects import obj

CONFIG: dict[str, Any] = {**C1, "scopeBinding": {"olm": {"enabled": True}}}
ALL_MODES = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
EDITS: Object = {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "list", "update"]}
ONE: Object = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["only"], "verbs": ["get", "delete"]}
ODD: Sequence[Object] = (
    {"apiGroups": [RBAC], "resources": ["clusterroles"], "verbs": ["bind", "escalate"]},
    {"apiGroups": [""], "resources": ["users"], "resourceNames": ["jane"], "verbs": ["impersonate"]},
    {"apiGroups": ["apps"], "resources": ["*/scale"], "verbs": ["*"]},
    {"apiGroups": ["*"], "resources": ["pods/log"], "verbs": ["get"]},
    {"nonResourceURLs": ["/metrics", "/logs/*"], "verbs": ["get"]},
)
MORE = {"alert-routing-edit": "alerts", "monitoring-edit": "monitors", "cluster-reader": "readings"}


class Explained:
    """The world: names of what people made in it."""

    def __init__(self, admin: Api, run: str = "") -> None:
        self.admin = admin
        self.run = run or token()
        self.project = f"p-{self.run}"
        self.chart = f"demo-{self.run}"
        self.release = f"{self.chart}-dummy"
        self.paas = f"pa{self.run}"
        self.tenant = f"t{self.run}"
        self.team, self.other = f"team-{self.run}", f"other-{self.run}"
        self.operators = Operators(admin, home=f"ops-{self.run}", prefix=f"m{self.run}-", eventually_s=START_S)
        self.csv_home = f"olm-{self.run}"
        self.csv = f"my-op-{self.run}.v1"
        self.scope = f"scope-{self.run}"

    async def kinds(self) -> None:
        """The kinds of other systems, and the ClusterRoles that the PaasConfig names."""
        await asyncio.gather(make_world(self.admin, "os"), install_flux(self.admin, current("GitRepository", "Kustomization")))
        for kind in (CLUSTER_SERVICE_VERSION, OPERATOR_GROUP):
            await self.admin.apply(CUSTOM_RESOURCE_DEFINITION, stand_in(kind))
            await until_served(self.admin, stand_in(kind))
        for name, resource in MORE.items():
            rules = [{"apiGroups": ["example.com"], "resources": [resource], "verbs": ["get", "list", "patch"]}]
            await self.admin.apply(CLUSTER_ROLE, obj(CLUSTER_ROLE, name, rules=rules))

    async def people(self) -> None:
        """Everything that people declare, and bindings that they make themselves."""
        scoping = Scoping(self.admin, START_S)
        await asyncio.gather(*(scoping.namespace(each) for each in (self.team, self.other, self.csv_home)))
        declared = (self._project, self._scopes, self._olm, self._members, self._paas, self._tenant, self._themselves)
        await asyncio.gather(*(each() for each in declared))

    async def _project(self) -> None:
        owners = Owners(self.admin, START_S)
        await owners.project(name=self.project)
        home = registration(self.project)
        people = {"jane": user("jane"), "crew": group("crew")}
        for name, level in (("jane", "admin"), ("crew", "view")):
            body = obj(ROLE_BINDING, name, home, roleRef=cluster_role(level), subjects=[people[name]])
            await self.admin.apply(ROLE_BINDING, body)
        await owners.ask(self.chart, self.project)
        await owners.provisioned(self.release)
        for level in ("admin", "view"):
            labels = {ROLE_OF: self.release, AGGREGATE_FROM: level}
            rules = [
                {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", *(["patch"] if level == "admin" else [])]}
            ]
            await self.admin.apply(ROLE, obj(ROLE, f"dash-{level}", self.release, labels=labels, rules=rules))
        taken = obj(ROLE_BINDING, "taken", self.release, roleRef=cluster_role("view"), subjects=[user("someone")])
        await self.admin.apply(ROLE_BINDING, taken)
        labels = {ROLE_OF: self.release, AGGREGATE_FROM: "admin"}
        rules = [{"apiGroups": ["batch"], "resources": ["cronjobs"], "verbs": ["create"]}]
        await self.admin.apply(ROLE, obj(ROLE, "taken", self.release, labels=labels, rules=rules))
        for level in ("admin", "view"):
            await owners.until(ROLE_BINDING, f"dash-{level}", self.release, bool)
        await owners.until(ROLE_BINDING, f"helm-cattle-helm-system-{self.release}", self.release, bool)

    async def _scopes(self) -> None:
        scoping = Scoping(self.admin, START_S)
        run = self.run
        subjects = [{"kind": "User", "name": "alice"}, {"kind": "Group", "name": "devs"}]
        await scoping.template(f"edits-{run}", role(f"edits-{run}", rules=[EDITS], subjects=subjects))
        await scoping.template(
            f"nodes-{run}", role(f"nodes-{run}", rules=[{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}])
        )
        await scoping.instance(self.scope, f"edits-{run}", namespaces=[self.team, self.other])
        await scoping.instance(f"all-{run}", f"nodes-{run}")
        for name in (self.scope, f"all-{run}"):
            await scoping.scoped(name)

    async def _olm(self) -> None:
        body = obj(
            OPERATOR_GROUP,
            "group",
            self.csv_home,
            labels={"scope-binding/olm-compat": "true"},
            spec={"targetNamespaces": [self.team]},
        )
        await self.admin.apply(OPERATOR_GROUP, body)
        pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "create"]}
        permissions = {"permissions": [{"serviceAccountName": "my-op", "rules": [pods]}]}
        spec = {
            "install": {"strategy": "deployment", "spec": permissions},
            "installModes": [{"type": mode, "supported": True} for mode in ALL_MODES],
        }
        await self.admin.apply(CLUSTER_SERVICE_VERSION, obj(CLUSTER_SERVICE_VERSION, self.csv, self.csv_home, spec=spec))
        await Scoping(self.admin, START_S).scoped(f"ns.{self.csv_home}.{self.csv}")

    async def _members(self) -> None:
        await self.operators.begin()
        await self.operators.scope(1, 2)
        await self.operators.ready()

    async def _paas(self) -> None:
        paasing = Paasing(self.admin, START_S)
        await paasing.config()
        await paasing.paas(self.paas, **example())
        await paasing.ready(self.paas)

    async def _tenant(self) -> None:
        tenants = Tenants(self.admin, START_S)
        await tenants.declare(self.tenant, f"ns-{self.tenant}", clusterRole="edit")
        await tenants.ready(self.tenant)

    async def _themselves(self) -> None:
        """What people bind without us: wildcards, names, URLs, groups, aggregated roles, and a role that is not there."""
        run, made = self.run, self.admin.apply
        await made(CLUSTER_ROLE, obj(CLUSTER_ROLE, f"odd-{run}", rules=list(ODD)))
        await made(
            CLUSTER_ROLE_BINDING,
            obj(CLUSTER_ROLE_BINDING, f"odd-{run}", roleRef=cluster_role(f"odd-{run}"), subjects=[user("otto")]),
        )
        await made(ROLE, obj(ROLE, "one", self.team, rules=[ONE]))
        role_ref = {"apiGroup": RBAC, "kind": "Role", "name": "one"}
        await made(
            ROLE_BINDING,
            obj(ROLE_BINDING, "one", self.team, roleRef=role_ref, subjects=[user("bob"), group("system:serviceaccounts")]),
        )
        own = [{"kind": "ServiceAccount", "name": "default"}]
        for name, to in (("lost", "nowhere"), ("viewers", "view"), ("editors", "edit")):
            subjects = {"lost": [user("bob")], "viewers": [group("system:authenticated")], "editors": own}[name]
            subjects = [{**each, "namespace": self.other} if each["kind"] == "ServiceAccount" else each for each in subjects]
            await made(ROLE_BINDING, obj(ROLE_BINDING, name, self.other, roleRef=cluster_role(to), subjects=subjects))


def acted(command: str) -> tuple[str, str, list[str], str, str]:
    """The parts of a command that is told: verb, namespace, resources, name, and a label that goes."""
    words = command.split()
    assert words[:2] in (["kubectl", "delete"], ["kubectl", "label"], ["kubectl", "edit"]), command
    namespace = words.pop(words.index("-n") + 1) if "-n" in words else ""
    words = [each for each in words if each != "-n"]
    return words[1], namespace, words[2].split(","), words[3], words[4].removesuffix("-") if len(words) > 4 else ""


async def act(admin: Api, told: str) -> None:
    """Do what an explanation says, as a person would: one command after the other, and in an editor what stands behind them."""
    commands, _, notes = told.partition("  # ")
    for command in commands.split(" && "):
        await _act(admin, command, notes.split("; "))


async def _act(admin: Api, command: str, notes: Sequence[str]) -> None:
    verb, namespace, resources, name, label = acted(command)
    for resource in resources:
        found = find(resource, await served_resources(admin))
        assert found is not None, command
        if verb == "delete":
            await admin.delete(found.kind, name, namespace)
        elif verb == "edit":
            await eventually(partial(_edit, admin, found.kind, name, namespace, notes), within=START_S, what=command)
        else:
            path = f"/metadata/labels/{label.replace('/', '~1')}"
            await admin.json_patch(found.kind, name, namespace, [{"op": "remove", "path": path}])


async def _edit(admin: Api, kind: Kind, name: str, namespace: str, notes: Sequence[str]) -> bool:
    """Do in an object what is told; False where somebody wrote it meanwhile."""
    live = await admin.get(kind, name, namespace)
    assert live is not None, name
    test = {"op": "test", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]}
    for note in notes:
        edited(live, note)
    try:
        await admin.json_patch(kind, name, namespace, [test, {"op": "replace", "path": "/spec", "value": live["spec"]}])
    except ConflictError:
        return False
    return True


def edited(obj: Object, note: str) -> None:
    """Do in an object what a note says: ``take a, b out of PATH``, or ``set PATH to false``."""
    taken, set_to = re.fullmatch(r"take (.+) out of (\S+)", note), re.fullmatch(r"set (\S+) to false", note)
    path = (taken[2] if taken else set_to[1] if set_to else "").split(".")
    assert path != [""], f"what is to be done? {note}"
    here: Any = obj
    for part in path[:-1]:
        here = here[part]
    if set_to:
        here[path[-1]] = False
        return
    assert taken is not None
    for each in taken[1].split(", "):
        listed = here[path[-1]]
        listed.remove(each) if isinstance(listed, list) else listed.pop(each)


async def explained_world(start: Callable[..., Awaitable[Knative]], admin: Api, run: str = "") -> tuple[Explained, Knative]:
    """All functions, in a cluster in which all is declared and done."""
    world = Explained(admin, run)
    await world.kinds()
    running = await start(CONFIG)
    await world.people()
    await running.drain()
    await eventually(lambda: admin.get(CLUSTER_ROLE, "view"), lambda found: bool(found and found.get("rules")), within=30)
    return world, running


# -- questions ---------------------------------------------------------------------------------------------


RESOURCES = (
    ("", "pods"),
    ("", "secrets"),
    ("", "configmaps"),
    ("apps", "deployments"),
    ("", "nodes"),
    ("example.com", "monitors"),
)
SUBRESOURCES = ("", "", "", "", "log", "scale", "status")
NAMES = ("", "", "only", "jane")
URLS = ("/metrics", "/logs/one", "/logs", "/healthz", "/version")


class Questions:
    """Questions from a seed: half of them from a rule of some binding, a third with a part exchanged, others at random."""

    def __init__(
        self, seed: int, bindings: Sequence[Object], roles: Mapping[tuple[str, str, str], Object], places: Sequence[str]
    ) -> None:
        self._random = random.Random(seed)
        self._places = [*places, ""]
        self._bindings = [each for each in bindings if each.get("subjects") and _role(each, roles).get("rules")]
        self._ours = [each for each in self._bindings if _is_ours(each)]
        self._roles = roles
        self._people = sorted(
            {_written(each, found) for found in self._bindings for each in found["subjects"]} | {"nobody", "group:none"}
        )

    def asked(self, count: int) -> Iterator[Question]:
        """So many questions."""
        for _ in range(count):
            question = self._from_a_rule() if self._random.random() < 0.6 else self._any()
            yield self._changed(question) if self._random.random() < 0.3 else question

    def _from_a_rule(self) -> Question:
        choose = self._random.choice
        binding = choose(self._ours if self._random.random() < 0.7 else self._bindings)
        rule = choose(_role(binding, self._roles)["rules"])
        who = asked_about(_written(choose(binding["subjects"]), binding))
        verb = _concrete(choose(rule["verbs"]), choose(VERBS))
        if rule.get("nonResourceURLs"):
            return Question(who.user, who.groups, verb, url=choose(rule["nonResourceURLs"]).replace("*", "one"))
        resource, _, below = choose(rule["resources"]).partition("/")
        group_ = _concrete(choose(rule["apiGroups"]), "apps")
        name = choose([*rule.get("resourceNames", [""])])
        place = binding["metadata"].get("namespace") or choose(self._places)
        return Question(who.user, who.groups, verb, group_, _concrete(resource, "pods"), _concrete(below, "log"), place, name)

    def _any(self) -> Question:
        choose = self._random.choice
        who = asked_about(choose(self._people))
        if self._random.random() < 0.1:
            return Question(who.user, who.groups, choose(VERBS[:3]), url=choose(URLS))
        group_, resource = choose(RESOURCES)
        return Question(
            who.user, who.groups, choose(VERBS), group_, resource, choose(SUBRESOURCES), choose(self._places), choose(NAMES)
        )

    def _changed(self, question: Question) -> Question:
        choose = self._random.choice
        who, (group_, resource) = asked_about(choose(self._people)), choose(RESOURCES)
        if question.url:
            return replace(question, url=choose(URLS))
        changes: Sequence[Mapping[str, Any]] = (
            {"user": who.user, "groups": who.groups},
            {"verb": choose(VERBS)},
            {"group": group_, "resource": resource},
            {"subresource": choose(SUBRESOURCES)},
            {"namespace": choose(self._places)},
            {"name": choose(NAMES)},
        )
        return replace(question, **choose(changes))


def _concrete(written: str, instead: str) -> str:
    return instead if written == "*" else written


def _is_ours(binding: Object) -> bool:
    managers = (str(each.get("manager")) for each in binding["metadata"].get("managedFields") or ())
    return any(each.startswith("tenantry-") for each in managers) or SCOPE_INSTANCE_UID in labels_of(binding)


def _role(binding: Object, roles: Mapping[tuple[str, str, str], Object]) -> Object:
    reference = binding["roleRef"]
    place = binding["metadata"].get("namespace", "") if reference["kind"] == "Role" else ""
    return roles.get((reference["kind"], place, reference["name"]), {})


def _written(subject: Object, binding: Object) -> str:
    if subject["kind"] == "Group":
        return f"group:{subject['name']}"
    if subject["kind"] == "User":
        return str(subject["name"])
    return f"sa:{subject.get('namespace') or binding['metadata']['namespace']}/{subject['name']}"


async def questions_about(admin: Api, seed: int) -> Questions:
    """Questions about the bindings that are there, ours the most."""
    listed = [await admin.list(kind) for kind in (ROLE_BINDING, CLUSTER_ROLE_BINDING, ROLE, CLUSTER_ROLE, NAMESPACE)]
    bindings = [*listed[0].items, *listed[1].items]
    roles = {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each
        for found in listed[2:4]
        for each in found.items
    }
    return Questions(seed, bindings, roles, [each["metadata"]["name"] for each in listed[4].items])
