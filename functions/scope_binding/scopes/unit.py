"""The wiring of scopes: which kinds concern it, which owners an event leads to, and what a sweep reads.

Owners are ``ScopeTemplate.<group>/<name>``, ``ScopeInstance.<group>/<name>``, and
``ScopeInNamespace.<group>/<namespace>/<name>`` for what an instance has in one namespace.  Such a part is enough when a
namespace or a binding changes while the instance is well: an event of one namespace reads a few objects, however many
namespaces and instances there are.  Only a run of the whole instance knows its status, so while it is not well, it is run whole.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from scope_binding.objects import KINDS
from scope_binding.scopes.declared import Reach, reach_of, roles_of, template_name_of
from scope_binding.scopes.names import (
    DECLARATIONS,
    FAMILIES,
    GENERATE_NAME,
    INSTANCE_UID,
    MANAGER,
    TEMPLATE_UID,
    Family,
    as_label,
    binding_name,
    family_of,
    is_of,
    reference_to,
)
from scope_binding.scopes.observe import observe_instance, observe_template
from scope_binding.scopes.plan import plan_instance, plan_template, wanted_binding
from scope_binding.scopes.report import report_instance, report_template
from scope_binding.scopes.seen import InstanceSeen, TemplateSeen, alive, is_as_wanted, is_well
from scope_binding.scopes.withdrawal import SHIPPED
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import Handler, Owner, Stages, Unit, is_cluster_scoped, stage
from tenantry.model import limits
from tenantry.model.config import SelectorChange
from tenantry.model.difference import difference, is_shared, owns
from tenantry.model.identifiers import is_dns_label
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    ROLE_BINDING,
    SCOPE_INSTANCE,
    SCOPE_TEMPLATE,
    Key,
    Kind,
    Object,
    is_terminating,
    labels_of,
)
from tenantry.model.names import SCOPE_GENERATED
from tenantry.serving import Settings

INSTANCE_PAUSE_S = 0.25
"""An instance's own writes come back as an event each."""
GENERATED_S = 0.5
"""Ten times what the unit ``olm`` needs to put a generated scope right."""
MADE_NAME = re.compile(r"-[0-9a-f]{10}$")

PART = "ScopeInNamespace"


class _Running:
    """The instances of one family that are run here now, or pause after a run: hints that spare runs for echoes of bindings."""

    def __init__(self) -> None:
        self._runs: dict[str, tuple[str, float]] = {}
        """By name the uid, and until when it pauses; for ever while it is run."""

    def begin(self, instance: Object) -> None:
        """An instance is run."""
        if len(self._runs) > limits.REMEMBERED:
            self._runs.clear()
        self._runs[_name(instance)] = instance["metadata"]["uid"], math.inf

    def end(self, owner: Owner, _: bool) -> None:
        """Its run has ended, and it pauses."""
        uid, until = self._runs.get(owner.name, ("", 0.0))
        if until == math.inf:
            self._runs[owner.name] = uid, time.monotonic() + INSTANCE_PAUSE_S

    def has(self, name: str, uid: str) -> bool:
        """Whether this very instance is run, or pauses."""
        known, until = self._runs.get(name, ("", 0.0))
        return uid != "" and uid == known and time.monotonic() < until


def _handlers(family: Family, running: _Running, limit: SelectorChange) -> dict[str, Handler[Any]]:
    """Of templates, of instances, and of what instances have in one namespace."""

    async def observe_part(owner: Owner, reader: Reader) -> InstanceSeen:
        return await observe_instance(family, owner.name, owner.namespace, reader)

    async def observe_whole(owner: Owner, reader: Reader) -> InstanceSeen:
        seen = await observe_part(owner, reader)
        if seen.instance is not None and reader.live:  # observing for a sweep is no run
            running.begin(seen.instance)
        return seen

    def second_look_after_s(seen: InstanceSeen) -> float:
        """A moment where ``olm`` generates the instance: it undoes what somebody narrowed, and no right is taken away."""
        return GENERATED_S if SCOPE_GENERATED in labels_of(seen.instance) else 0.0

    def unsettled(seen: InstanceSeen) -> bool:
        """Whether one sees that somebody edited what ``olm`` generated: it may need longer when it is slow."""
        whole = _as_made(seen.instance, "scopeTemplateName") and _as_made(seen.template, "clusterRoles")
        return SCOPE_GENERATED in labels_of(seen.instance) and not whole

    part = Handler[InstanceSeen](
        observe=observe_part,
        plan=lambda seen: plan_instance(seen, limit),
        report=lambda seen, refusals: report_instance(seen, refusals, limit),
        accepts=lambda owner: is_dns_label(owner.namespace),
        second_look_after_s=second_look_after_s,
        unsettled=unsettled,
    )
    return {
        _type(family.template): Handler[TemplateSeen](
            observe=lambda owner, reader: observe_template(family, owner.name, reader),
            plan=plan_template,
            report=report_template,
        ),
        _type(family.instance): replace(
            part, observe=observe_whole, accepts=is_cluster_scoped, pause_s=INSTANCE_PAUSE_S, ended=running.end
        ),
        _part(family, "", "").type: part,
    }


def _as_made(generated: Object | None, field: str) -> bool:
    """Whether nobody has taken this field, or any other of the spec, from us: what somebody only removed does not show."""
    return generated is not None and owns(generated, MANAGER, "spec", field) and not is_shared(generated, MANAGER, "spec")


class Scopes(Unit):
    """The unit ``scopes`` of scope-binding."""

    name = "scopes"
    kinds = frozenset({*DECLARATIONS, NAMESPACE, CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE_BINDING})

    def __init__(self, limit: SelectorChange = SHIPPED) -> None:
        self._running = {family: _Running() for family in FAMILIES.values()}
        self.handlers = {
            of: handler for family, running in self._running.items() for of, handler in _handlers(family, running, limit).items()
        }

    # -- the owners of an event ------------------------------------------------------------------------

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """Templates, instances and parts of instances that a key concerns."""
        match key.kind:
            case "ScopeTemplate":
                return await self._template_owners(family_of(key.api_version), key.name, reader)
            case "ScopeInstance":
                return await self._instance_owners(family_of(key.api_version), key.name, reader)
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
        owner = _owner(family.template, name)
        instances = [_owner(family.instance, _name(each)) for each in await _instances_of(family, name, reader)]
        return [[owner], instances, [owner]] if instances else [[owner]]

    async def _instance_owners(self, family: Family, name: str, reader: Reader) -> Stages:
        """The template that it names, the instance, and templates that no instance names any more."""
        instance = alive(await reader.get(family.instance, name))
        named = template_name_of(instance) if instance is not None else ""
        before = [_owner(family.template, named)] if named else []
        after = [_owner(family.template, each) for each in await _unreferenced(family, reader)]
        return [each for each in (before, [_owner(family.instance, name)], after) if each]

    async def _cluster_role_owners(self, name: str, hint: Mapping[str, str], reader: Reader) -> Stages:
        """Templates whose the ClusterRole is or was, or that want its name; then instances that it concerns."""
        live = await reader.get(CLUSTER_ROLE, name)
        last = live or {"metadata": {"labels": hint}}
        first: list[Owner] = []
        then: list[Owner] = []
        for family in FAMILIES.values():
            for template in await reader.list_shared(family.template):
                called = _name(template)
                role = next((each for each in roles_of(template) if each.name == name), None)
                marked = is_of(last, template, TEMPLATE_UID) or labels_of(last).get(family.template_label) == as_label(called)
                if role is None and not marked:
                    continue
                first.append(_owner(family.template, called))
                right = role is not None and is_as_wanted(role, template, live)
                instances = await _instances_of(family, called, reader)
                then += [_owner(family.instance, _name(each)) for each in instances if not right or not is_well(each)]
        return [each for each in (first, then) if each]

    async def _namespace_owners(self, name: str, reader: Reader) -> Stages:
        """Instances that mean the namespace, or have bindings in it."""
        concerned: list[tuple[Family, Object, Reach]] = []
        for family in FAMILIES.values():
            for instance in await reader.list_shared(family.instance):
                reach = reach_of(instance)
                if name in reach.listed or reach.selector is not None or name in _unbound(instance):
                    concerned.append((family, instance, reach))
        if not concerned:
            return []
        namespace = await reader.get(NAMESPACE, name)
        if namespace is None or is_terminating(namespace):
            listing = [(family, each) for family, each, reach in concerned if name in reach.listed or name in _unbound(each)]
            return stage(_owner(family.instance, _name(each)) for family, each in listing)
        meant = {each["metadata"]["uid"] for _, each, reach in concerned if reach.covers(name, labels_of(namespace))}
        bound: set[str | None] = set()
        if len(meant) < len(concerned):  # a selector that does not match any more: is there something to take away?
            bindings = await reader.list(ROLE_BINDING, name, labels={INSTANCE_UID: ""})
            bound = {labels_of(each).get(INSTANCE_UID) for each in bindings}
        owners: list[Owner] = []
        for family, instance, _ in concerned:
            uid = instance["metadata"]["uid"]
            if name in _unbound(instance) or (uid in meant and not is_well(instance)):
                owners.append(_owner(family.instance, _name(instance)))
            elif uid in meant or uid in bound:
                owners.append(_part(family, _name(instance), name))
        return stage(owners)

    async def _binding_owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The instance whose the binding is, by its owner reference, its labels or its name; nobody for an echo.

        While an instance is run here, or was a moment ago, its bindings' events only ask for one more run of it: such
        are the echoes of hundreds of writes.
        """
        uid = hint.get(INSTANCE_UID, "")
        for family, running in self._running.items():
            name = hint.get(family.instance_label, "")
            if running.has(name, uid):
                return [[_owner(family.instance, name)]]
        if reader.told is not None and not hint.get(INSTANCE_UID) and not MADE_NAME.search(key.name):
            return []  # one that had the label is told as gone, with its labels
        live = await reader.get(KINDS[key.kind], key.name, key.namespace)
        labels = hint if live is None else {**hint, **labels_of(live)}
        reference = reference_to(live, SCOPE_INSTANCE.kind) if live is not None else None
        owners: list[Owner] = []
        for family in FAMILIES.values():
            name = labels.get(family.instance_label, "")
            if reference is not None:
                name = reference["name"] if reference["apiVersion"] == family.instance.api_version else ""
            instance = await reader.get(family.instance, name) if name else None
            if instance is None:
                owners += [_owner(family.instance, name)] if name and live is not None else []
            elif instance["metadata"]["uid"] in (labels.get(INSTANCE_UID), (reference or {}).get("uid")):
                if live is not None and is_well(instance) and await _stands(live, family, instance, reader):
                    return []
                whole = not key.namespace or not is_well(instance)
                return [[_owner(family.instance, name) if whole else _part(family, name, key.namespace)]]
        if not owners and (labels.get(INSTANCE_UID) or MADE_NAME.search(key.name)):
            owners = await _by_name(key, labels, reader)
        if not owners and live is None:
            owners = await _templates_left(labels, reader)
        return stage(owners)

    # -- sweep -----------------------------------------------------------------------------------------

    def prefetch(self) -> Sequence[Prefetch]:
        """All declarations, namespaces and ClusterRoles, and the bindings of instances, also without one of their labels."""
        marks = (INSTANCE_UID, GENERATE_NAME)
        bindings = [Prefetch(kind, ((mark, ""),)) for mark in marks for kind in (ROLE_BINDING, CLUSTER_ROLE_BINDING)]
        return [*map(Prefetch, DECLARATIONS), Prefetch(NAMESPACE), Prefetch(CLUSTER_ROLE), *bindings]

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """Every template and instance there is, and deleted ones that left something."""
        owners: list[Owner] = []
        for kind in DECLARATIONS:
            owners += [_owner(kind, _name(each)) for each in await reader.list(kind)]
        for role in await reader.list(CLUSTER_ROLE, labels={TEMPLATE_UID: ""}):
            owners += _left_by(role, SCOPE_TEMPLATE.kind)
        for kind in (ROLE_BINDING, CLUSTER_ROLE_BINDING):
            for binding in await reader.list(kind, labels={INSTANCE_UID: ""}):
                owners += _left_by(binding, SCOPE_INSTANCE.kind)
        return list(dict.fromkeys(owners))


def _type(kind: Kind) -> str:
    return f"{kind.kind}.{kind.group}"


def _owner(kind: Kind, name: str) -> Owner:
    return Owner(_type(kind), name)


def _part(family: Family, name: str, namespace: str) -> Owner:
    return Owner(f"{PART}.{family.group}", name, namespace)


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _unbound(instance: Object) -> Sequence[str]:
    """The namespaces in which an instance does not hold, by its status, also that of an earlier spec."""
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
    wanted = (wanted_binding(family, role, namespace, instance, template) for role in roles_of(template))
    return any(_name(each) == _name(binding) and difference(each, binding, manager=MANAGER) is None for each in wanted)


async def _by_name(key: Key, labels: Mapping[str, str], reader: Reader) -> list[Owner]:
    """Instances whose binding this could be, where no label or reference names one: by uid, or by the name it would have."""
    owners: list[Owner] = []
    for family in FAMILIES.values():
        instances = await reader.list_shared(family.instance)
        templates: dict[str, Object] = {}
        if any(each["metadata"]["uid"] != labels.get(INSTANCE_UID) for each in instances):
            templates = {_name(each): each for each in await reader.list_shared(family.template)}
        for instance in instances:
            uid, template = instance["metadata"]["uid"], templates.get(template_name_of(instance))
            names = {binding_name(uid, role.generate_name, key.namespace) for role in roles_of(template)} if template else ()
            if uid == labels.get(INSTANCE_UID) or key.name in names:
                owners.append(_owner(family.instance, _name(instance)))
    return owners


async def _templates_left(labels: Mapping[str, str], reader: Reader) -> list[Owner]:
    """The template of a binding that was deleted with its instance: its ClusterRoles waited for the last binding."""
    owners: list[Owner] = []
    for family in FAMILIES.values():
        if label := labels.get(family.template_label):
            names = await _unreferenced(family, reader)
            owners += [_owner(family.template, name) for name in names if as_label(name) == label]
    return owners


async def _instances_of(family: Family, template: str, reader: Reader) -> list[Object]:
    """The living instances that name a template."""
    return [each for each in await reader.list_shared(family.instance) if template_name_of(each) == template and alive(each)]


async def _unreferenced(family: Family, reader: Reader) -> list[str]:
    """Templates that have ClusterRoles and that no instance names."""
    named = {template_name_of(each) for each in await reader.list_shared(family.instance) if alive(each)}
    made = await reader.list_shared(CLUSTER_ROLE, labels={TEMPLATE_UID: ""})
    references = (reference for role in made if (reference := reference_to(role, SCOPE_TEMPLATE.kind)) is not None)
    found = {each["name"]: None for each in references if each["apiVersion"] == family.template.api_version}
    return [name for name in found if name not in named]


def _left_by(obj: Object, kind: str) -> list[Owner]:
    """The template or instance that an object names, by its owner reference or else by its label."""
    reference = reference_to(obj, kind)
    if reference is not None:
        return [Owner(f"{kind}.{family_of(reference['apiVersion']).group}", reference["name"])]
    labels = labels_of(obj)
    named = {family: labels.get(family.label_for(kind)) for family in FAMILIES.values()}
    return [Owner(f"{kind}.{family.group}", name) for family, name in named.items() if name]


def made(settings: Settings) -> Scopes:
    """The unit of a process."""
    return Scopes(settings.config.scope_binding.selector_change)
