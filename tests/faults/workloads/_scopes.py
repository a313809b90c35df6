"""Steps and promises that the workloads of scopes share."""

from tenantry.model.conditions import find_condition
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    EVENT,
    NAMESPACE,
    ROLE_BINDING,
    SCOPE_INSTANCE,
    SCOPE_TEMPLATE,
    Object,
    labels_of,
)
from tenantry.model.names import SCOPE_GENERATED
from tenantry.testing.workload import Step, Workload, apply, namespace, together
from tenantry.testing.world import Moment

OURS, RULE = "operators.coreos.io/scopeTemplateUID", {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
OP, EVE = {"kind": "ServiceAccount", "name": "op", "namespace": "ops"}, {"kind": "User", "name": "eve"}
A, B, MARKED = namespace("a-@"), namespace("b-@"), namespace("b-@", {"env": "e-@"})


def template(role: str, name: str = "st-@", subject: Object = OP) -> Step:
    return apply("ScopeTemplate", name, spec={"clusterRoles": [{"generateName": role, "rules": [RULE], "subjects": [subject]}]})


def instance(name: str, *namespaces: str, of: str = "st-@", **spec: object) -> Step:
    where = {"namespaces": list(namespaces)} if namespaces else {}
    return apply("ScopeInstance", name, spec={"scopeTemplateName": of, **where, **spec})


def binds_only_to_roles_of_templates(moment: Moment) -> str:
    """What is bound leads to a ClusterRole of the template that the instance names; cluster-wide only if it declares that."""
    after = moment.change.after
    if not moment.by or after is None or moment.change.key.kind not in ("RoleBinding", "ClusterRoleBinding"):
        return ""
    scopes = moment.declared("ScopeInstance", after["metadata"]["ownerReferences"][0]["name"])
    wide = [each for each in scopes if "namespaceSelector" not in each["spec"] and not each["spec"].get("namespaces")]
    if moment.change.key.kind == "ClusterRoleBinding" and not wide:
        return "bound in the whole cluster"
    named = {each["spec"]["scopeTemplateName"] for each in scopes}
    templates = {each["metadata"]["uid"] for name in named for each in moment.declared("ScopeTemplate", name)}
    roles = moment.declared("ClusterRole", after["roleRef"]["name"])
    if roles and not any(labels_of(role).get(OURS) in templates for role in roles):
        return f"bound to the foreign ClusterRole {after['roleRef']['name']}"
    return "" if roles else "bound to a ClusterRole that never was"


def access_is_never_lost(moment: Moment) -> str:
    """A binding of an instance that goes on goes only when another gives what it gave (sb-9), or was refused and told so."""
    before = moment.change.before
    if not moment.by or moment.change.after is not None or before is None or "Binding" not in moment.change.key.kind:
        return ""
    objects = moment.objects
    owner = next((ref["name"] for ref in before["metadata"].get("ownerReferences") or ()), "")
    scope = next((each for key, each in objects.items() if (key.kind, key.name) == ("ScopeInstance", owner)), None)
    named = [key.name for key in objects if key.kind == "ScopeTemplate"]
    roles = {key.name for key, role in objects.items() if key.kind == "ClusterRole" and OURS in labels_of(role)}
    if scope is None or scope["spec"]["scopeTemplateName"] not in named or before["roleRef"]["name"] not in roles:
        return ""
    place = moment.change.key.namespace
    told = (scope.get("status") or {}).get("unboundNamespaces", ())
    meant = [key.name for key in objects if key.kind == "Namespace" and place in ("", key.name) and key.name not in told]
    # What we keep for OLM somebody may have edited until a moment ago: a run may follow what it said then.
    held = moment.declared("ScopeInstance", owner) if SCOPE_GENERATED in labels_of(scope) else [scope]
    lost = [name for name in meant if all(_names(each["spec"], name) for each in held)]
    left = [key for key, each in objects.items() if "Binding" in key.kind and key != moment.change.key]
    return ", ".join(f"nothing is bound in {name}" for name in lost if not any(key.namespace in ("", name) for key in left))


def _names(spec: Object, namespace: str) -> bool:
    """Whether an instance declares a namespace by its name, or all of them."""
    return "namespaceSelector" not in spec and namespace in spec.get("namespaces", [namespace])


def declared_is_bound(objects: list[Object]) -> str:
    """An instance that says it is well has a binding in each namespace that it lists; nothing else is bound."""
    scopes = {each["metadata"]["uid"]: each for each in objects if each["kind"] == "ScopeInstance"}
    wrong = []
    places: dict[str, set[str]] = {uid: set() for uid in scopes}
    for each in objects:
        if "Binding" in each["kind"]:
            owner = labels_of(each).get("operators.coreos.io/scopeInstanceUID", "")
            places.setdefault(owner, set()).add(each["metadata"].get("namespace", ""))
    for uid, found in places.items():
        scope = scopes.get(uid)
        well = scope and (find_condition(scope, "Scoped") or {}).get("status") == "True"
        if scope is None or (
            well and "namespaceSelector" not in scope["spec"] and found != set(scope["spec"].get("namespaces", [""]))
        ):
            wrong.append(f"{scope and scope['metadata']['name']} is bound in {sorted(found)}")
    return "; ".join(wrong)


def _tells(obj: Object) -> bool:
    if obj["kind"] == EVENT.kind:
        return obj.get("reason") == "CleanUpFailed"
    return any((find_condition(obj, type_) or {}).get("status") == "False" for type_ in ("Templated", "Scoped"))


def scopes() -> Workload:
    """A workload of scope-binding without scenarios."""
    return Workload(
        "scope-binding",
        services=["scope-binding"],
        tells=_tells,
        safe=[binds_only_to_roles_of_templates, access_is_never_lost],
        ends=[declared_is_bound],
        watched=(NAMESPACE, SCOPE_TEMPLATE, SCOPE_INSTANCE, CLUSTER_ROLE, ROLE_BINDING, CLUSTER_ROLE_BINDING, EVENT),
    )


T, BOTH, ONE, WHOLE = template("t-@"), instance("si-@", "a-@", "b-@"), instance("ci-@", "a-@"), instance("ci-@")
PLACES, STANDING = together(A, B), together(A, B, T)
READY = together(STANDING, BOTH)
