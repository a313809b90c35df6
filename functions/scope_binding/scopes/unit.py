"""The wiring of scopes: which kinds concern it, whom an event touches, and what a sweep looks at.

Owners are ``ScopeTemplate.<group>/<name>``, ``ScopeInstance.<group>/<name>``, and
``ScopeInNamespace.<group>/<namespace>/<name>`` for what an instance has in one namespace.  Such a part is enough when a
namespace or a binding changes while the instance is well: an event of one namespace reads a few objects, however many
namespaces and instances there are.  Only the whole of an instance says how it is, so while it is not well, it is run whole.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from scope_binding.scopes import observe, plan, report
from scope_binding.scopes.declared import Reach, reach_of, roles_of, template_name_of
from scope_binding.scopes.names import (
    FAMILIES,
    GENERATE_NAME,
    INSTANCE_UID,
    MANAGER,
    TEMPLATE_UID,
    Family,
    as_label,
    binding_name,
    reference_to,
)
from scope_binding.scopes.seen import InstanceSeen, TemplateSeen, alive, is_as_wanted, is_well
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch, Snapshot
from tenantry.engine.unit import Handler, Owner, Stages, Unit, is_cluster_scoped, stage
from tenantry.model import limits
from tenantry.model.difference import difference
from tenantry.model.identifiers import is_dns_label
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    ROLE_BINDING,
    Key,
    Object,
    is_terminating,
    labels_of,
)
from tenantry.model.names import SCOPE_GENERATED

INSTANCE_PAUSE_S = 0.25
"""An instance's own writes come back as an event each."""
GENERATED_S = 0.5
"""Ten times what the unit ``olm`` needs to put a generated instance right."""
MADE_NAME = re.compile(r"-[0-9a-f]{10}$")

PART = "ScopeInNamespace"


class _Running:
    """The instances of one family that are run here now, or pause after a run: hints that save looking at echoes of bindings."""

    def __init__(self) -> None:
        self._running: dict[str, observe.Version] = {}
        self._paused: dict[str, tuple[float, observe.Version]] = {}

    def begin(self, name: str, version: observe.Version) -> None:
        """An instance of this version is run."""
        if len(self._paused) > limits.REMEMBERED:
            self._paused.clear()
        self._running[name] = version

    def end(self, owner: Owner, _: bool) -> None:
        """Its run has ended, and it pauses."""
        version = self._running.pop(owner.name, None)
        if version is not None:
            self._paused[owner.name] = time.monotonic(), version

    def has(self, name: str, uid: str) -> bool:
        """Whether this very instance is run, or pauses."""
        ended_at, version = self._paused.get(name, (0.0, None))
        if time.monotonic() - ended_at >= INSTANCE_PAUSE_S:
            version = None
        version = self._running.get(name, version)
        return version is not None and version.uid == uid


def _handlers(family: Family, running: _Running) -> dict[str, Handler[Any]]:
    """Of templates, of instances, and of what instances have in one namespace."""

    async def observe_part(owner: Owner, reader: Reader) -> InstanceSeen:
        return await observe.observe_instance(family, owner.name, owner.namespace, reader)

    async def observe_whole(owner: Owner, reader: Reader) -> InstanceSeen:
        seen = await observe_part(owner, reader)
        version = observe.version(seen.instance)
        if not isinstance(reader, Snapshot) and version is not None:  # a sweep that observes is no run
            running.begin(owner.name, version)
        return seen

    def second_look_after_s(seen: InstanceSeen) -> float:
        """Where ``olm`` generates the instance, it puts right what somebody else narrowed before any right is taken away."""
        return GENERATED_S if SCOPE_GENERATED in labels_of(seen.instance) else 0.0

    part = Handler[InstanceSeen](
        observe=observe_part,
        plan=plan.plan_instance,
        report=report.report_instance,
        accepts=lambda owner: is_dns_label(owner.namespace),
        second_look_after_s=second_look_after_s,
    )
    return {
        _template(family, "").type: Handler[TemplateSeen](
            observe=lambda owner, reader: observe.observe_template(family, owner.name, reader),
            plan=plan.plan_template,
            report=report.report_template,
        ),
        _instance(family, "").type: replace(
            part, observe=observe_whole, accepts=is_cluster_scoped, pause_s=INSTANCE_PAUSE_S, ended=running.end
        ),
        _part(family, "", "").type: part,
    }


class Scopes(Unit):
    """The unit ``scopes`` of scope-binding."""

    name = "scopes"
    kinds = frozenset(
        {NAMESPACE, CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE_BINDING}
        | {kind for family in FAMILIES.values() for kind in (family.template, family.instance)}
    )

    def __init__(self) -> None:
        self._running = {family: _Running() for family in FAMILIES.values()}
        self.handlers = {
            of: handler for family, running in self._running.items() for of, handler in _handlers(family, running).items()
        }

    # -- whom an event touches -------------------------------------------------------------------------

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """Templates, instances and parts of instances that a key concerns."""
        match key.kind:
            case "ScopeTemplate":
                return await self._template_owners(_family(key), key.name, reader)
            case "ScopeInstance":
                return await self._instance_owners(_family(key), key.name, reader)
            case "ClusterRole":
                return await self._cluster_role_owners(key.name, hint, reader)
            case "Namespace":
                return await self._namespace_owners(key.name, reader)
            case _:
                return await self._binding_owners(key, hint, reader)

    async def _template_owners(self, family: Family, name: str, reader: Reader) -> Stages:
        """The template, then its instances, then the template again: roles that nobody is bound to any more go last.

        Also for the echo of its own status: an event that comes again, because an instance could not be run, looks the same.
        """
        owner = _template(family, name)
        instances = [_instance(family, each) for each in await _naming(family, name, reader)]
        return [[owner], instances, [owner]] if instances else [[owner]]

    async def _instance_owners(self, family: Family, name: str, reader: Reader) -> Stages:
        """The template that it names, the instance, and templates that nobody names any more."""
        instance = await reader.get(family.instance, name)
        owner = _instance(family, name)
        named = template_name_of(instance) if instance is not None and not is_terminating(instance) else ""
        before = [_template(family, named)] if named else []
        after = [_template(family, each) for each in await _unreferenced(family, reader)]
        return [each for each in (before, [owner], after) if each]

    async def _cluster_role_owners(self, name: str, hint: Mapping[str, str], reader: Reader) -> Stages:
        """Templates whose the ClusterRole is or was, or that want its name."""
        live = await reader.get(CLUSTER_ROLE, name)
        labels = hint if live is None else labels_of(live)
        first: list[Owner] = []
        then: list[Owner] = []
        for family in FAMILIES.values():
            reference = reference_to(live, family.template.kind) if live is not None else None
            for template in await reader.list_shared(family.template):
                called = template["metadata"]["name"]
                role = next((each for each in roles_of(template) if each.name == name), None)
                marked = (
                    labels.get(TEMPLATE_UID) == template["metadata"]["uid"]
                    or labels.get(family.template_label) == as_label(called)
                    or (reference is not None and reference.get("uid") == template["metadata"]["uid"])
                )
                if role is None and not marked:
                    continue
                first.append(_template(family, called))
                right = role is not None and is_as_wanted(role, template, live)
                instances = await _naming_objects(family, called, reader)
                then += [_instance(family, each["metadata"]["name"]) for each in instances if not right or not is_well(each)]
        return [each for each in (first, then) if each]

    async def _namespace_owners(self, name: str, reader: Reader) -> Stages:
        """Instances that mean the namespace, or have bindings in it."""
        concerned: list[tuple[Family, Object, Reach]] = []
        for family in FAMILIES.values():
            for instance in await reader.list_shared(family.instance):
                reach = reach_of(instance)
                if name in reach.listed or reach.selector is not None or name in _told(instance):
                    concerned.append((family, instance, reach))
        if not concerned:
            return []
        namespace = await reader.get(NAMESPACE, name)
        if namespace is None or is_terminating(namespace):
            return stage(_whole(of, each) for of, each, reach in concerned if name in reach.listed or name in _told(each))
        meant = {each["metadata"]["uid"] for _, each, reach in concerned if reach.covers(name, labels_of(namespace))}
        bound: set[str | None] = set()
        if len(meant) < len(concerned):  # a selector that does not match any more: is there something to take away?
            bindings = await reader.list(ROLE_BINDING, name, labels={INSTANCE_UID: ""})
            bound = {labels_of(each).get(INSTANCE_UID) for each in bindings}
        owners: list[Owner] = []
        for family, instance, _ in concerned:
            uid = instance["metadata"]["uid"]
            if name in _told(instance) or (uid in meant and not is_well(instance)):
                owners.append(_whole(family, instance))
            elif uid in meant or uid in bound:
                owners.append(_part(family, instance["metadata"]["name"], name))
        return stage(owners)

    async def _binding_owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The instance whose the binding is, by its owner reference, its labels or its name; nobody for an echo.

        While an instance is run here, or was a moment ago, its bindings' events only ask to look at it once more: such
        are the echoes of hundreds of writes.
        """
        uid = hint.get(INSTANCE_UID, "")
        named = {family: hint.get(family.instance_label, "") for family in FAMILIES.values()}
        if busy := [_instance(family, name) for family, name in named.items() if self._running[family].has(name, uid)]:
            return [busy]
        kind = ROLE_BINDING if key.kind == ROLE_BINDING.kind else CLUSTER_ROLE_BINDING
        live = await reader.get(kind, key.name, key.namespace)
        labels = hint if live is None else {**hint, **labels_of(live)}
        reference = reference_to(live, "ScopeInstance") if live is not None else None
        owners: list[Owner] = []
        for family in FAMILIES.values():
            name = labels.get(family.instance_label, "")
            if reference is not None:
                name = reference["name"] if reference["apiVersion"] == family.instance.api_version else ""
            instance = await reader.get(family.instance, name) if name else None
            if instance is None:
                owners += [_instance(family, name)] if name and live is not None else []
            elif instance["metadata"]["uid"] in (labels.get(INSTANCE_UID), (reference or {}).get("uid")):
                if live is not None and is_well(instance) and await _stands(live, family, instance, reader):
                    return []
                whole = not key.namespace or not is_well(instance)
                return [[_instance(family, name) if whole else _part(family, name, key.namespace)]]
        if not owners and (labels.get(INSTANCE_UID) or MADE_NAME.search(key.name)):
            owners = [owner async for owner in _by_name(key, labels, reader)]
        if not owners and live is None:
            owners = [owner async for owner in _templates_left(labels, reader)]
        return stage(owners)

    # -- sweep -----------------------------------------------------------------------------------------

    def prefetch(self) -> Sequence[Prefetch]:
        """All declarations, namespaces and ClusterRoles, and the bindings of instances, also those that lost a label by hand."""
        declared = [Prefetch(kind) for family in FAMILIES.values() for kind in (family.template, family.instance)]
        marks = (INSTANCE_UID, GENERATE_NAME)
        bindings = [Prefetch(kind, ((mark, ""),)) for mark in marks for kind in (ROLE_BINDING, CLUSTER_ROLE_BINDING)]
        return [*declared, Prefetch(NAMESPACE), Prefetch(CLUSTER_ROLE), *bindings]

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """Every template and instance there is, and those that are gone and left something."""
        owners: dict[Owner, None] = {}
        for family in FAMILIES.values():
            for template in await reader.list(family.template):
                owners[_template(family, template["metadata"]["name"])] = None
            for instance in await reader.list(family.instance):
                owners[_instance(family, instance["metadata"]["name"])] = None
        for role in await reader.list(CLUSTER_ROLE, labels={TEMPLATE_UID: ""}):
            owners |= dict.fromkeys(_left_by(role, "ScopeTemplate"))
        for kind in (ROLE_BINDING, CLUSTER_ROLE_BINDING):
            for binding in await reader.list(kind, labels={INSTANCE_UID: ""}):
                owners |= dict.fromkeys(_left_by(binding, "ScopeInstance"))
        return list(owners)


def _family(key: Key) -> Family:
    return FAMILIES[key.api_version.partition("/")[0]]


def _template(family: Family, name: str) -> Owner:
    return Owner(f"{family.template.kind}.{family.group}", name)


def _instance(family: Family, name: str) -> Owner:
    return Owner(f"{family.instance.kind}.{family.group}", name)


def _whole(family: Family, instance: Object) -> Owner:
    return _instance(family, instance["metadata"]["name"])


def _part(family: Family, name: str, namespace: str) -> Owner:
    return Owner(f"{PART}.{family.group}", name, namespace)


def _told(instance: Object) -> Sequence[str]:
    """The namespaces of which an instance says that it does not hold there."""
    return (instance.get("status") or {}).get("unboundNamespaces") or ()


async def _stands(binding: Object, family: Family, instance: Object, reader: Reader) -> bool:
    """Whether a live binding is one that its instance wants, to the letter."""
    namespace = binding["metadata"].get("namespace", "")
    reach = reach_of(instance)
    if namespace and not reach.covers(namespace, labels_of(await reader.get(NAMESPACE, namespace)) if reach.selector else {}):
        return False
    template = alive(await reader.get(family.template, template_name_of(instance)))
    if template is None or reach.cluster == bool(namespace):
        return False
    wanted = (plan.wanted_binding(family, role, namespace, instance, template) for role in roles_of(template))
    return any(
        each["metadata"]["name"] == binding["metadata"]["name"] and difference(each, binding, manager=MANAGER) is None
        for each in wanted
    )


async def _by_name(key: Key, labels: Mapping[str, str], reader: Reader) -> AsyncIterator[Owner]:
    """Instances whose binding this could be, where it does not say itself: by uid, or by the name that it would have."""
    for family in FAMILIES.values():
        templates: dict[str, Object] | None = None
        for instance in await reader.list_shared(family.instance):
            name, uid = instance["metadata"]["name"], instance["metadata"]["uid"]
            if labels.get(INSTANCE_UID) != uid:
                if templates is None:
                    templates = {each["metadata"]["name"]: each for each in await reader.list_shared(family.template)}
                template = templates.get(template_name_of(instance))
                roles = roles_of(template) if template else ()
                if key.name not in {binding_name(uid, role.generate_name, key.namespace) for role in roles}:
                    continue
            yield _instance(family, name)


async def _templates_left(labels: Mapping[str, str], reader: Reader) -> AsyncIterator[Owner]:
    """The template of a binding that is gone with its instance: its ClusterRoles waited for the last binding."""
    for family in FAMILIES.values():
        if label := labels.get(family.template_label, ""):
            for name in await _unreferenced(family, reader):
                if as_label(name) == label:
                    yield _template(family, name)


async def _naming_objects(family: Family, template: str, reader: Reader) -> list[Object]:
    return [each for each in await reader.list_shared(family.instance) if template_name_of(each) == template and alive(each)]


async def _naming(family: Family, template: str, reader: Reader) -> list[str]:
    return [each["metadata"]["name"] for each in await _naming_objects(family, template, reader)]


async def _unreferenced(family: Family, reader: Reader) -> list[str]:
    """Templates that have ClusterRoles and that no instance names."""
    named = {template_name_of(each) for each in await reader.list_shared(family.instance) if alive(each)}
    made = await reader.list_shared(CLUSTER_ROLE, labels={TEMPLATE_UID: ""})
    found = {reference["name"]: None for role in made if (reference := _reference(role, family)) is not None}
    return [name for name in found if name not in named]


def _reference(role: Object, family: Family) -> Object | None:
    reference = reference_to(role, family.template.kind)
    return reference if reference is not None and reference["apiVersion"] == family.template.api_version else None


def _left_by(obj: Object, kind: str) -> Iterable[Owner]:
    """The owner that an object names, by its owner reference or else by its label."""
    reference = reference_to(obj, kind)
    if reference is not None:
        family = FAMILIES[reference["apiVersion"].partition("/")[0]]
        yield Owner(f"{kind}.{family.group}", reference["name"])
        return
    for family in FAMILIES.values():
        label = family.template_label if kind == family.template.kind else family.instance_label
        if name := labels_of(obj).get(label):
            yield Owner(f"{kind}.{family.group}", name)
