"""Where registration namespaces, what is in them, and the marks of members come from."""

from __future__ import annotations

from tenantry.model.difference import entries_of, owns
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, NETWORK_POLICY, SERVICE_ACCOUNT, Object, key_in, key_of, labels_of
from tenantry.model.names import OPERATED, PROJECT_ID
from tenantry.model.origin import HARDENS, MAKES, Because, Looking, Origin, kubectl
from tenantry.model.projects import REGISTRATION_MANAGER, is_member, is_registration, project_of_registration_name
from tenantry.model.rbac import BoundSubject

KINDS = frozenset({NAMESPACE, CONFIG_MAP, NETWORK_POLICY, SERVICE_ACCOUNT})
_MEMBERS_NAMED = 3


async def explain(obj: Object, subject: BoundSubject | None, look: Looking) -> Origin | None:
    """The namespaces that carry the label of the project."""
    del subject
    key, config = key_of(obj), look.config
    if key.kind == NAMESPACE.kind and not is_registration(obj, config):
        return _of_member(obj, config.project_label)
    if key.kind != NAMESPACE.kind and not (entries_of(obj, REGISTRATION_MANAGER) and OPERATED in labels_of(obj)):
        return None
    project = project_of_registration_name(key.namespace or key.name)
    if not project:
        return _of_system(obj)
    proof = f"label {PROJECT_ID}, or fields of field manager {REGISTRATION_MANAGER}"
    line = f"metadata.labels[{config.project_label}]"
    listed = await look.list(NAMESPACE, "", f"{config.project_label}={project}")
    members = [each["metadata"]["name"] for each in listed if is_member(each, project, config)]
    because = [Because(key_in(NAMESPACE, each, ""), line, project) for each in members[:_MEMBERS_NAMED]]
    because.append(Because(None, "global.cattle.projectLabel", config.project_label))
    if key.kind != NAMESPACE.kind:
        because.insert(0, Because(None, *_setting(key.kind)))
    if not members:
        end = kubectl("delete", NAMESPACE, key.namespace or key.name)
    elif len(members) == 1:
        take = kubectl("label", NAMESPACE, members[0], more=f"{config.project_label}-")
        end = f"{take}  # of the last member: the namespace is marked as orphaned, and may be deleted"
    else:
        end = f"when none of its {len(members)} namespaces has the label any more it may be deleted; it is not deleted by us"
    does = HARDENS if key.kind == SERVICE_ACCOUNT.kind else MAKES
    return Origin(f"project/{project}", proof, tuple(because), (end,), does)


def _setting(kind: str) -> tuple[str, str]:
    if kind == CONFIG_MAP.kind:
        return "helmProjectOperator.charts", "values and questions of a chart"
    return "helmProjectOperator.hardenedNamespaces", "hardening"


def _of_system(obj: Object) -> Origin:
    because = (
        Because(None, *_setting(obj["kind"])),
        Because(None, "helmProjectOperator.systemNamespace", obj["metadata"]["namespace"]),
    )
    end = "change the configuration: in single-namespace mode it belongs to the system namespace"
    return Origin(f"system/{obj['metadata']['namespace']}", f"label {OPERATED}", because, (end,))


def _of_member(obj: Object, label: str) -> Origin | None:
    """The label with which a member remembers its project."""
    name = obj["metadata"]["name"]
    if not owns(obj, REGISTRATION_MANAGER, "metadata", "labels", PROJECT_ID):
        return None
    because = (Because(key_of(obj), f"metadata.labels[{label}]", labels_of(obj).get(label, "gone")),)
    proof = f"field manager {REGISTRATION_MANAGER} has the label"
    return Origin(
        f"namespace/{name}",
        proof,
        because,
        (kubectl("label", NAMESPACE, name, more=f"{label}-"),),
        f"keeps the label {PROJECT_ID} on it",
    )
