"""What the workloads of rights of Paas share."""

from __future__ import annotations

from collections.abc import Mapping

from tenantry.local.deployment import deployment_folder, documents
from tenantry.local.followed import stand_in
from tenantry.model.kinds import EVENT, NAMESPACE, ROLE_BINDING, Object, annotations_of, object_of
from tenantry.model.paas.names import ARGO_CD, GROUP, MANAGED_BY_PAAS, PAAS, PAAS_NS, PAAS_UID
from tenantry.model.paas.names import ASKED_BY as ASKED
from tenantry.testing.workload import Step, Workload, apply, together
from tenantry.testing.world import Moment

from ._paas import P, Spec, X, configure, home, of_paas, only_what_is_proven_goes, owner_of, paas, present, worlds

SERVICE, RBAC = "rbac-aggregation-paas", "rbac.authorization.k8s.io"


def names(owner: Object) -> dict[str, str]:
    """What the groups of a Paas are called, by key."""
    groups = owner["spec"].get("groups") or {}
    return {key: each["query"].partition("=")[2] if each.get("query") else _own(owner, key) for key, each in groups.items()}


def _own(owner: Object, key: str) -> str:
    return f"{owner['metadata']['name']}-{key}"


def rights(owner: Object, space: Object, config: Spec, asked: Mapping[str, Object]) -> set[tuple[str, str]]:
    """ClusterRoles and groups that a Paas gives in a namespace."""
    groups, called, mappings = owner["spec"].get("groups") or {}, names(owner), config.get("rolemappings") or {}
    found = set()
    for key in _applying(owner, space["metadata"]["name"], annotations_of(space).get(ASKED, ""), asked, groups):
        for role in groups[key].get("roles") or ["default"] if key in groups else ():
            found |= {(each, called[key]) for each in mappings.get(role, mappings.get("default", ()))}
    return found


def _applying(owner: Object, name: str, by: str, asked: Mapping[str, Object], groups: Spec) -> list[str]:
    """The keys of groups that have rights in a namespace."""
    suffix = name.removeprefix(f"{owner['metadata']['name']}-")
    declared = owner["spec"].get("namespaces") or {}
    if suffix in declared:
        return list(declared[suffix].get("groups") or groups)
    if by not in asked:
        return []
    return list(asked[by]["spec"].get("groups") or _applying(owner, by.partition("/")[0], _parent(by, asked), asked, groups))


def _parent(by: str, asked: Mapping[str, Object]) -> str:
    """The key of the PaasNS whose namespace a PaasNS lives in; here a PaasNS has the name of its namespace's last part."""
    place = by.partition("/")[0]
    return next((key for key in asked if place.endswith(f"-{key.partition('/')[2]}")), "")


def bound(binding: Object | None) -> set[tuple[str, str]]:
    """Who has what by a binding."""
    return {(binding["roleRef"]["name"], each["name"]) for each in binding.get("subjects") or ()} if binding else set()


def gives_what_is_declared(moment: Moment) -> str:
    """No subject that no declaration in force, or in force a moment ago, gives; so none of one Paas with another."""
    key, after = moment.change.key, moment.change.after
    if not moment.by or key.kind != ROLE_BINDING.kind or after is None:
        return ""
    extra = bound(after) - bound(moment.change.before)
    spaces = moment.declared(NAMESPACE.kind, key.namespace)
    for owners, config, asked in worlds(moment) if extra else ():
        for space in spaces:
            owner = owner_of(space, owners)
            if owner is not None and annotations_of(after).get(PAAS_UID) == owner["metadata"]["uid"]:
                extra -= rights(owner, space, config, asked)
    return f"gave {sorted(extra)}" if extra else ""


def no_free_group(moment: Moment) -> str:
    """A Group goes when no binding of ours names it any more."""
    key = moment.change.key
    if not moment.by or key.kind != GROUP.kind or moment.change.after is not None:
        return ""
    named = [str(k) for k, each in moment.objects.items() if k.kind == ROLE_BINDING.kind and key.name in dict(_by_name(each))]
    return f"its name is free, and named by {named}" if named else ""


def _by_name(binding: Object) -> list[tuple[str, str]]:
    return [(group, role) for role, group in bound(binding)] if PAAS_UID in annotations_of(binding) else []


def holds_what_is_declared(objects: list[Object]) -> str:
    """In the end each Paas has exactly the rights and Groups that are declared, but for names that are another's."""
    owners, config, asked = present(objects)
    groups = {each["metadata"]["name"]: annotations_of(each).get(PAAS_UID) for each in objects if each["kind"] == GROUP.kind}
    wanted, there = set(), set()
    for each in objects:
        if each["kind"] == ROLE_BINDING.kind and PAAS_UID in annotations_of(each):
            there |= {(each["metadata"]["namespace"], *one) for one in bound(each)}
        owner = owner_of(each, owners) if each["kind"] == NAMESPACE.kind else None
        if owner is not None:
            made = [name for key, name in names(owner).items() if name == _own(owner, key)]
            held = {name for name, uid in groups.items() if uid != owner["metadata"]["uid"]}
            given = {
                one for one in rights(owner, each, config, asked) if one[1] not in held and one[1] in [*groups, *names_of(owner)]
            }
            wanted |= {(each["metadata"]["name"], *one) for one in given}
            lacking = [name for name in made if name not in groups]
            if lacking:
                return f"no Groups {lacking}"
    return "" if wanted == there else f"missing {sorted(wanted - there)}, too much {sorted(there - wanted)}"


def names_of(owner: Object) -> list[str]:
    """The names out of queries."""
    return [name for key, name in names(owner).items() if name != _own(owner, key)]


def group(*roles: str, users: str = "u", query: str = "") -> Spec:
    """A group with a user, or with a query."""
    return {"roles": list(roles), **({"query": query} if query else {"users": [users]})}


US, THEM, OTHERS = group("admin-@"), group("edit-@"), group(query="CN=q-@")
ALL = {"us": US, "them": THEM, "others": OTHERS}
SPACES = {"a": {}, "b": {"groups": ["us"]}}
MAPPED = configure(rolemappings={"edit-@": ["edit"], "admin-@": ["admin", "view"]})


def one(**groups: Spec) -> Step:
    """The first Paas, with groups."""
    return paas(P, groups=groups or ALL, namespaces=SPACES)


def two(**groups: Spec) -> Step:
    """The other Paas."""
    return paas(X, groups=groups or {"us": group("edit-@")}, namespaces={"c": {}})


HOMES = together(home("p-@-a", P), home("p-@-b", P), home("p-@-x-c", X))
LABELLED = apply("Namespace", "p-@-foreign", labels={MANAGED_BY_PAAS: P})
"""A namespace that has the label and a name that fits, and is nobody's."""
THEIRS = {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}, "subjects": []}
FOREIGN = apply("RoleBinding", "paas-theirs", "p-@-foreign", labels={MANAGED_BY_PAAS: P}, **THEIRS)
READY = [together(MAPPED, LABELLED, FOREIGN), together(one(), two()), HOMES]
PROBE = object_of(
    ROLE_BINDING,
    {"name": "paas-view", "namespace": "paas-probe", "labels": {MANAGED_BY_PAAS: "probe"}, "annotations": {PAAS_UID: "probe"}},
    roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"},
    subjects=[],
)


def rights_of_paas() -> Workload:
    """A workload of rbac-aggregation for Paas, without scenarios."""
    return of_paas(
        "rbac-aggregation",
        SERVICE,
        {"rolemappings": {"default": ["view"]}},
        safe=[gives_what_is_declared, only_what_is_proven_goes, no_free_group],
        ends=[holds_what_is_declared],
        destroys=lambda body: body.get("kind") == ROLE_BINDING.kind,  # somebody may have left its subjects
        installed=[
            stand_in(GROUP),
            stand_in(ARGO_CD),
            object_of(NAMESPACE, {"name": "paas-probe", "labels": {MANAGED_BY_PAAS: "probe"}}),
        ],
        sources=[
            each
            for folder in ("openshift", "argo")
            for each in documents(deployment_folder("knative") / folder / "source.yaml")
            if each["metadata"]["name"].startswith(SERVICE)
        ],
        can=[PROBE],
        read_by_others=f"list rolebindings [{MANAGED_BY_PAAS}=",  # whoever settles a name reads those of each Paas that is behind
        watched=(NAMESPACE, PAAS, PAAS_NS, ROLE_BINDING, GROUP, EVENT),
    )
