"""Steps and promises that the workloads of NamespaceScopes share."""

from scope_binding.namespace_scopes.rules import parse
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import CONFIG_MAP, EVENT, NAMESPACE, NAMESPACE_SCOPE, ROLE, ROLE_BINDING
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


def gives_what_is_consented(moment: Moment) -> str:
    """Nothing without consent, no right beyond it, nobody but accounts of the from namespace, and no consent of our own."""
    key, after = moment.change.key, moment.change.after
    if not moment.by or key.kind not in (ROLE.kind, ROLE_BINDING.kind) or after is None:
        return ""
    tag = key.namespace.partition("-")[2]
    allowed = {f"a-{tag}": parse([MORE]), f"b-{tag}": parse([READS])}.get(key.namespace, [])
    beyond = [rule for rule in parse(after.get("rules") or [], granting=True) if not any(one.covers(rule) for one in allowed)]
    strangers = [subject for subject in after.get("subjects") or () if subject.get("namespace") != f"ops-{tag}"]
    return f"gave {beyond} {strangers}" if beyond or strangers or not allowed or key.name.startswith(CONSENT[:-5]) else ""


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
        tells=lambda obj: (find_condition(obj, "Ready") or {}).get("status") == "False",
        safe=[gives_what_is_consented],
        watched=(NAMESPACE, NAMESPACE_SCOPE, CONFIG_MAP, ROLE, ROLE_BINDING, EVENT),
        largest=1500,  # a sweep reads the pods and workloads of every home, those of runs that are over too
    )
