"""Projects and the classes of namespaces: which namespace is what, from its own labels alone.

=============  ================================================================================
registration   ``cattle-project-<id>`` and ours: where project owners ask for releases
release        ours, or with our mark and the system project's label: where releases live
system         by name, or by the label of the system project or of a denied one: left alone
ordinary       everything else; a member of project ``<id>`` when it carries the project label
=============  ================================================================================

A registration namespace is ours when it has our mark for that very project, when our field manager
still owns its name label (which nobody can remove, so that stripping it by hand does not disown it), or
when an administrator opted in by annotation.  A name alone never makes it ours (hpo-18).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tenantry.model.config import Config
from tenantry.model.difference import owns
from tenantry.model.identifiers import is_dns_label
from tenantry.model.kinds import Object, annotations_of, is_terminating, labels_of
from tenantry.model.names import (
    ADOPT,
    NAMESPACE_NAME,
    OPERATED,
    ORPHANED,
    PROJECT_ID,
    PROJECT_ID_LIMIT,
    PROJECT_LABEL_ACCEPTED,
    REGISTRATION_PREFIX,
    field_manager,
)

# Who wrote a field says what it means to others: several functions, and an uninstallation, ask for these two.
REGISTRATION_MANAGER = field_manager("namespace-registration")
RELEASE_FUNCTION = "release-provisioning"
RELEASE_MANAGER = field_manager(RELEASE_FUNCTION)

PlaceClass = Literal["registration", "release", "system", "ordinary"]


@dataclass(frozen=True, slots=True)
class Place:
    """The class of a namespace and the project that it is of (empty: none; not checked for validity)."""

    is_a: PlaceClass
    project: str = ""


def project_id_problem(project: str) -> str:
    """Why a project id cannot be served, with the fix; empty when it can (hpo-17)."""
    if not project:
        return "the project id is empty: set the label to a project id, or remove it"
    if len(project) > PROJECT_ID_LIMIT:
        return (
            f"the project id has {len(project)} characters and at most {PROJECT_ID_LIMIT} fit into the name of a "
            "namespace: use a shorter project id"
        )
    if not is_dns_label(project):
        return (
            f"the project id {project!r} cannot be part of a namespace name: use lower-case letters, digits and "
            "dashes, beginning and ending with a letter or digit"
        )
    return ""


def registration_name(project: str) -> str:
    """The name of a project's registration namespace."""
    return REGISTRATION_PREFIX + project


def project_of_registration_name(name: str) -> str:
    """The project id in a registration namespace's name; empty for any other name."""
    project = name.removeprefix(REGISTRATION_PREFIX)
    return project if project != name and not project_id_problem(project) else ""


def is_registration(namespace: Object, config: Config) -> bool:
    """Whether an existing namespace is a registration namespace of ours."""
    project = project_of_registration_name(namespace["metadata"]["name"])
    if not project or not config.project_label or is_made_for_release(namespace):
        return False
    labels = labels_of(namespace)
    return (
        (OPERATED in labels and labels.get(PROJECT_ID, project) == project)
        or annotations_of(namespace).get(ADOPT) == "true"
        or owns(namespace, REGISTRATION_MANAGER, "metadata", "labels", NAMESPACE_NAME)
    )


def earlier_label(registration: Object | None, config: Config) -> str:
    """The label key by which a project was registered, where the configuration names another one now.

    A wrong key makes every project look empty, so what a project has stays while it has no namespace by the new key.  Empty
    where the key is the same, the namespace was not made by us, or an administrator has accepted the new one.
    """
    if registration is None or annotations_of(registration).get(PROJECT_LABEL_ACCEPTED) == config.project_label:
        return ""
    project = project_of_registration_name(registration["metadata"]["name"])
    others = {PROJECT_ID, OPERATED, ORPHANED, NAMESPACE_NAME, *config.helm_project_operator.namespace_labels}
    keys = sorted(
        key
        for key, value in labels_of(registration).items()
        if value == project and key not in others and owns(registration, REGISTRATION_MANAGER, "metadata", "labels", key)
    )
    return "" if not config.project_label or config.project_label in keys else next(iter(keys), "")


LABEL_CHANGED = "ProjectLabelChanged"
"""The reason where a project is left as it is because the configuration names another label key than it was registered by."""


def label_changed(project: str, earlier: str, config: Config) -> str:
    """What is told of a project that is left as it is for that, with the fix."""
    accept = f"annotate namespace {registration_name(project)} with {PROJECT_LABEL_ACCEPTED}={config.project_label}"
    return (
        f"project {project} was registered by the label {earlier}, the configuration names {config.project_label} now, and no "
        f"namespace has that for this project, so it is left as it is: correct global.cattle.projectLabel, label its namespaces, "
        f"or, to give it up, {accept}"
    )


def is_made_for_release(namespace: Object) -> bool:
    """Whether an existing namespace was made, or taken over, for a release, whatever its labels say by now."""
    return owns(namespace, RELEASE_MANAGER, "metadata", "labels", NAMESPACE_NAME)


def place_of(namespace: Object, config: Config) -> Place:
    """The class of a namespace."""
    name = namespace["metadata"]["name"]
    labels = labels_of(namespace)
    project = labels.get(config.project_label, "") if config.project_label else ""
    if is_registration(namespace, config):
        return Place("registration", project_of_registration_name(name))
    if name in config.system_namespaces:
        return Place("system")
    if is_made_for_release(namespace) or (project and project == config.release_project_id and OPERATED in labels):
        return Place("release", labels.get(PROJECT_ID, ""))
    if project in config.denied_project_ids:
        return Place("system")
    if project and name == registration_name(project):
        return Place("system")  # somebody else's namespace that blocks its own project: left alone (hpo-18)
    return Place("ordinary", project)


def is_member(namespace: Object | None, project: str, config: Config) -> bool:
    """Whether a namespace counts for a project: ordinary, in it, and not being deleted."""
    return namespace is not None and not is_terminating(namespace) and place_of(namespace, config) == Place("ordinary", project)


def may_be_home(name: str, config: Config) -> bool:
    """Whether a namespace of this name can be one whose ProjectHelmCharts become releases."""
    if not config.project_label:
        return name == config.helm_project_operator.system_namespace
    return bool(project_of_registration_name(name))


def project_annotation(project: str, config: Config) -> str:
    """The value of the project annotation: ``<clusterId>:<id>``, or the id alone (hpo-1, hpo-6)."""
    cluster_id = config.global_.cattle.cluster_id
    return f"{cluster_id}:{project}" if cluster_id else project


@dataclass(frozen=True, slots=True)
class ChartFiles:
    """What a registration namespace shows of a chart: its values and its questions (hpo-3)."""

    config_map_name: str
    values: str = ""
    questions: str = ""
