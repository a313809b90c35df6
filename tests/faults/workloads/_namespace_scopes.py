"""Steps and promises that the workloads of NamespaceScopes share."""

from scope_binding.namespace_scopes.rules import parse
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import CONFIG_MAP, EVENT, NAMESPACE, NAMESPACE_SCOPE, ROLE, ROLE_BINDING, Object, labels_of
from tenantry.model.names import GIVEN_FROM
from tenantry.testing.workload import Workload, apply, namespace, together
from tenantry.testing.world import Moment

OPS, CONSENT, GIVEN = "ops-@", "nss-managed-role-from-ops-@", "namespacescope-managed-role-from-s-@"
RBAC = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role"}
READS, MORE = ({"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs} for verbs in (["get", "list"], ["*"]))
OPERATOR = {"labels": {"app": "o", "intent": "projected"}}
ENV = [{"name": "WATCH_NAMESPACE", "valueFrom": {"configMapKeyRef": {"name": "namespace-scope", "key": "namespaces"}}}]


def bound(role: str, where: str, account: str):  # type: ignore[no-untyped-def]
    """A RoleBinding to a Role of its name."""
    subjects = [{"kind": "ServiceAccount", "name": account, "namespace": OPS}]
    return apply("RoleBinding", role, where, roleRef={**RBAC, "name": role}, subjects=subjects)


def consent(where: str, rule: dict[str, list[str]]):  # type: ignore[type-arg, no-untyped-def]
    """The Role of a consent."""
    return apply("Role", CONSENT, where, rules=[rule])


def scope(*members: str, projection: str = "managed"):  # type: ignore[no-untyped-def]
    """A NamespaceScope."""
    chosen = {"scope-binding/projection": projection}
    return apply("NamespaceScope", "s-@", OPS, annotations=chosen, spec={"namespaceMembers": list(members)})


def _consented(roles, bindings):  # type: ignore[no-untyped-def]
    """The rules that a consent gives the operator."""
    bound = any(each["name"] == AGENT for binding in bindings for each in binding.get("subjects") or ())
    return [rule for role in roles if bound for rule in parse(role.get("rules") or [])]


def gives_what_is_consented(moment: Moment) -> str:
    """Nothing without consent, no right beyond it, nobody but accounts of the from namespace, and no consent of our own."""
    key, after = moment.change.key, moment.change.after
    if not moment.by or key.kind not in (ROLE.kind, ROLE_BINDING.kind) or after is None:
        return ""
    tag = key.namespace.partition("-")[2]
    name = CONSENT.replace("@", tag)
    allowed = _consented(moment.declared("Role", name, key.namespace), moment.declared("RoleBinding", name, key.namespace))
    beyond = [rule for rule in parse(after.get("rules") or [], granting=True) if not any(one.covers(rule) for one in allowed)]
    strangers = [subject for subject in after.get("subjects") or () if subject.get("namespace") != f"ops-{tag}"]
    roles = moment.declared("Role", after["roleRef"]["name"], key.namespace) if key.kind == ROLE_BINDING.kind else []
    elsewhere = key.kind == ROLE_BINDING.kind and not any(GIVEN_FROM in labels_of(role) for role in roles)
    if beyond or strangers or elsewhere or not allowed or key.name.startswith(CONSENT[:-5]):
        return f"gave {beyond} {strangers} {after.get('roleRef')}"
    return ""


def holds_what_is_consented(objects: list[Object]) -> str:
    """At the end no Role of ours has a rule beyond the consent that there is."""
    there = {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in objects}
    wrong = []
    for (kind, where, name), each in there.items():
        if kind == ROLE.kind and GIVEN_FROM in labels_of(each):
            consent = CONSENT.replace("@", where.partition("-")[2])
            role, binding = there.get((ROLE.kind, where, consent), {}), there.get((ROLE_BINDING.kind, where, consent), {})
            allowed = _consented([role], [binding])
            rules = parse(each.get("rules") or [], granting=True)
            wrong += [f"{where}/{name}" for rule in rules if not any(one.covers(rule) for one in allowed)]
    return ", ".join(wrong)


TEMPLATE = {"metadata": OPERATOR, "spec": {"containers": [{"name": "c", "image": "c", "env": ENV}]}}
SPEC = {"replicas": 0, "selector": {"matchLabels": {"app": "o"}}, "template": TEMPLATE}
HOME = [
    namespace(OPS),
    apply("Role", "o-@", OPS, rules=[MORE]),
    bound("o-@", OPS, "default"),
    apply("Deployment", "o", OPS, spec=SPEC),
]
AGENT = "ibm-namespace-scope-operator"
A = [namespace("a-@"), consent("a-@", MORE), bound(CONSENT, "a-@", AGENT)]
B = [namespace("b-@"), consent("b-@", READS), bound(CONSENT, "b-@", AGENT)]
BEGIN, C, ON_A, ON_AB = together(*HOME, *A, *B), namespace("c-@"), scope("a-@"), scope("a-@", "b-@")


def namespace_scopes() -> Workload:
    """A workload of scope-binding without scenarios."""
    return Workload(
        "scope-binding",
        services=["scope-binding-namespace-scopes"],
        tells=lambda obj: (find_condition(obj, "Ready") or {}).get("status") == "False",
        safe=[gives_what_is_consented],
        ends=[holds_what_is_consented],
        watched=(NAMESPACE, NAMESPACE_SCOPE, CONFIG_MAP, ROLE, ROLE_BINDING, EVENT),
        largest=1500,  # a sweep reads the pods and workloads of every home, those of runs that are over too
    )
