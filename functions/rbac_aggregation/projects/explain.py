"""Where the RoleBinding of a Role in a release comes from, and who would be in it."""

from __future__ import annotations

from rbac_aggregation.projects.levels import change_digest, level_roles, people_of, taken_from
from rbac_aggregation.projects.seen import is_made_by_us, is_ours, owner_text, release_of
from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    PROJECT_HELM_CHART,
    ROLE,
    ROLE_BINDING,
    Kind,
    Object,
    key_in,
    key_of,
    labels_of,
)
from tenantry.model.names import AGGREGATE_FROM, LEVEL_TAKEN_FROM, PROJECT_CHART, ROLE_OF, WITHDRAWAL_ACCEPTED
from tenantry.model.origin import Because, Looking, Offer, Origin, all_of, kubectl, leaving
from tenantry.model.rbac import BoundSubject, Question, allows, binder, subject_in
from tenantry.model.releases import held_by

KINDS = frozenset({ROLE_BINDING})


async def explain(obj: Object, subject: BoundSubject | None, look: Looking) -> Origin | None:
    """The ProjectHelmChart, the Role with its level, and the bindings of the project that name the subject."""
    if not is_ours(obj):
        return None
    key, config = key_of(obj), look.config
    home, _, name = owner_text(obj).partition("/")
    made = "its field roleRef is ours" if is_made_by_us(obj) else "it has our label, and leads to the Role of its name"
    because: list[Because] = []
    ends: list[str] = []
    if name:
        because.append(Because(key_in(PROJECT_HELM_CHART, name, home), "metadata.name", "the release that the Role is in"))
    role = await look.get(ROLE, obj["roleRef"]["name"], key.namespace)
    level = labels_of(role).get(AGGREGATE_FROM, "")
    if role is not None:
        because.append(Because(key_of(role), f"metadata.labels[{AGGREGATE_FROM}]", level))
    if configured := level_roles(config).get(level, ""):
        line = f"helmProjectOperator.releaseRoleBindings.clusterRoleRefs.{level}"
        because.append(Because(None, line, configured))
        bound, cluster_role = taken_from(obj)
        if bound != level or cluster_role == configured:
            cluster_role = configured
        else:  # another one in the configuration waits (decision 30)
            because.append(Because(key, f"metadata.annotations[{LEVEL_TAKEN_FROM}]", f"{cluster_role}, still in force"))
            ends += await _accepting(home, name, look)
        naming = await _naming(home, cluster_role, subject, look)
        because += [Because(key_of(each), "subjects", str(subject) if subject else "people of the project") for _, each in naming]
        ends += all_of([leaving(kind, each, subject) for kind, each in naming])
    if name:
        ends.append(kubectl("delete", PROJECT_HELM_CHART, name, home))
    return Origin(f"release/{release_of(obj, config)}", f"{made}; annotation {PROJECT_CHART}", tuple(because), tuple(ends))


async def _accepting(home: str, name: str, look: Looking) -> list[str]:
    """The command by which somebody accepts what another ClusterRole in the configuration takes."""
    chart = await look.get(PROJECT_HELM_CHART, name, home) if name else None
    if chart is None:
        return []
    return [kubectl("annotate", PROJECT_HELM_CHART, name, home, f"{WITHDRAWAL_ACCEPTED}={change_digest(chart, look.config)}")]


async def _naming(home: str, role: str, subject: BoundSubject | None, look: Looking) -> list[tuple[Kind, Object]]:
    """The bindings of a registration namespace and of the cluster that name a subject for a ClusterRole, or anybody."""
    places = [*([(ROLE_BINDING, home)] if home else []), (CLUSTER_ROLE_BINDING, "")]
    return [(kind, each) for kind, place in places for each in await look.list(kind, place) if _names(each, role, subject)]


def _names(binding: Object, role: str, subject: BoundSubject | None) -> bool:
    people = people_of(role, [binding])
    return bool(people) if subject is None else (subject.kind, subject.name) in people


async def offers(question: Question, look: Looking) -> list[Offer]:
    """In the namespace of a release: Roles with a level that would give it, and where the people of that level are named."""
    if not question.namespace or question.url:
        return []
    found: list[Offer] = []
    for role in await look.list(ROLE, question.namespace, ROLE_OF):
        if allows(question, role):
            found += await _offered(role, question, look)
    return found


async def _offered(role: Object, question: Question, look: Looking) -> list[Offer]:
    level, release, name = labels_of(role).get(AGGREGATE_FROM, ""), labels_of(role)[ROLE_OF], role["metadata"]["name"]
    about = Because(key_of(role), f"metadata.labels[{AGGREGATE_FROM}]", f"level {level or 'none'} of release {release}")
    cluster_role = level_roles(look.config).get(level, "")
    if not cluster_role:
        fix = f"kubectl label -n {question.namespace} role {name} {AGGREGATE_FROM}=admin  # or edit, view; better in the chart"
        return [Offer(about, f"Role {name} would give it, and its level {level!r} is off or none", fix)]
    chart = await _chart_of(release, question.namespace, look)
    if chart is None:
        return []
    home = chart["metadata"]["namespace"]
    for _, each in await _naming(home, cluster_role, None, look):
        if subject_in(each, question) is not None:
            told = Because(key_of(chart), "status.conditions", f"release {release}")
            fix = kubectl("get", PROJECT_HELM_CHART, chart["metadata"]["name"], home, "-o yaml")
            return [Offer(told, f"{key_of(each)} names them, so Role {name} is to be bound to them, and is not", fix)]
    fix = f"kubectl create rolebinding -n {home} NAME --clusterrole={cluster_role} {binder(question)}"
    return [Offer(about, f"no binding of namespace {home} names them for ClusterRole {cluster_role}", fix)]


async def _chart_of(release: str, namespace: str, look: Looking) -> Object | None:
    """The ProjectHelmChart that has the release: as the namespace remembers it, or as it says itself."""
    if look.config.dedicated:
        home, _, name = held_by(await look.get(NAMESPACE, namespace)).partition("/")
        return await look.get(PROJECT_HELM_CHART, name, home) if name else None
    charts = await look.list(PROJECT_HELM_CHART, namespace)
    return next((each for each in charts if (each.get("status") or {}).get("releaseName") == release), None)
