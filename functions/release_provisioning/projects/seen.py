"""What is observed of one release name, and what it says: who claims it, who has it, and what stands in the way."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

from release_provisioning.projects.dashboards import Dashboards
from release_provisioning.projects.values import values_problem
from tenantry.model.conditions import find_condition
from tenantry.model.config import Chart, Config
from tenantry.model.difference import entries_of, owns
from tenantry.model.digest import Digest
from tenantry.model.hardening import Hardening
from tenantry.model.kinds import Object, annotations_of, declared, finalizers_of, is_terminating, key_of, labels_of
from tenantry.model.names import (
    ADOPT,
    CHART_MANAGED_BY,
    CLEANED_UP_BY,
    CLEANUP,
    OPERATED,
    PROJECT_ID,
    REGISTRATION_PREFIX,
    RELEASE_FINALIZER,
    RELEASE_MANAGED_BY,
    SYSTEM_NAMESPACE,
    UPSTREAM_PROJECT_CHART_FINALIZER,
)
from tenantry.model.projects import (
    LABEL_CHANGED,
    REGISTRATION_MANAGER,
    RELEASE_MANAGER,
    earlier_label,
    is_made_for_release,
    is_member,
    label_changed,
    place_of,
    project_of_registration_name,
)
from tenantry.model.releases import (
    ChartKey,
    chart_key,
    held_by,
    holder_of,
    made_for,
    release_name,
    release_name_problem,
    release_namespace,
)
from tenantry.model.selectors import BadSelector, parse_selector

WITHOUT_TARGETS = "NoTargets"
"""The reason where the project has no namespace; the release is taken away then."""


def was_served(asked: Object) -> bool:
    """Whether a ProjectHelmChart ever got our finalizer or a status from us."""
    return RELEASE_FINALIZER in finalizers_of(asked) or bool(entries_of(asked, RELEASE_MANAGER, "status"))


@dataclass(frozen=True)
class Contender:
    """A ProjectHelmChart that may claim the release name, or for which something of the release was made.

    ``chart`` is None when its helmApiVersion is not ours; ``project`` is empty when its namespace is no
    registration namespace of ours; ``denied`` says that the project is on the deny list.  ``home`` is its namespace.
    """

    object: Object
    chart: Chart | None
    project: str
    denied: bool = False
    home: Object | None = None

    @cached_property
    def key(self) -> ChartKey:
        """Its namespace and name."""
        return chart_key(self.object)

    @property
    def is_served(self) -> bool:
        """Whether its release is kept: a chart of ours, in a project that is served."""
        return self.chart is not None and bool(self.project) and not self.denied

    @property
    def finalizers(self) -> tuple[str, ...]:
        """The finalizers that are for us to take off: upstream's too, where the ProjectHelmChart is ours."""
        ours = self.chart is not None and bool(self.project)
        return (RELEASE_FINALIZER, *([UPSTREAM_PROJECT_CHART_FINALIZER] if ours else []))

    def asks_for(self, name: str) -> bool:
        """Whether it asks for this release, or for no chart that we know."""
        return self.chart is None or release_name(self.key, self.chart) == name

    def claims(self, name: str) -> bool:
        """Whether it may hold the name: served, of that name, and not on its way out."""
        return self.is_served and not is_terminating(self.object) and self.asks_for(name)


@dataclass(frozen=True)
class ObservedRelease:
    """One release name as it is: who may want it (oldest first), and what there is of it.

    ``members`` are the namespaces with the project's label (all of them in single-namespace mode); ``gone`` are the
    ProjectHelmCharts that something was made for and that exist no more; ``installation`` identifies this one, and is
    only read when the cleanup label asks for it.  ``values`` is the text of its values where they are large, and so were merged
    beforehand; in a sweep maybe only its digest.  Thousands may ask for one name (a-19): who has it is worked out once.
    """

    name: str
    contenders: tuple[Contender, ...] = ()
    helm_chart: Object | None = None
    helm_release: Object | None = None
    namespace: Object | None = None
    members: Sequence[Object] = ()
    dashboards: Dashboards = field(default_factory=lambda: Dashboards({}))
    gone: frozenset[str] = frozenset()
    installation: str = ""
    hardening: Hardening = field(default_factory=Hardening)
    values: str | Digest | None = None

    @cached_property
    def keeper(self) -> Contender | None:
        """A ProjectHelmChart that has the release and is not served any more: nobody else may have the name meanwhile."""
        found = (each for each in self.contenders if str(each.key) == self._marked and not is_terminating(each.object))
        return next((each for each in found if not each.claims(self.name)), None)

    @cached_property
    def holder(self) -> Contender | None:
        """Who gets the release, by `holder_of`."""
        by_key = {each.key: each for each in self.contenders if not is_terminating(each.object)}
        found = holder_of({key: each.claims(self.name) for key, each in by_key.items()}, self._marked)
        return by_key[found] if found is not None else None

    def has_home(self, config: Config) -> bool:
        """Whether there is a namespace that was made for the release, and is not on its way out."""
        found = self.namespace
        return config.dedicated and found is not None and not is_terminating(found) and is_made_for_release(found)

    @property
    def _marked(self) -> str:
        return made_for(self.helm_chart, self.helm_release, self.namespace)


@dataclass(frozen=True, slots=True)
class ReleaseProblem:
    """Why a ProjectHelmChart gets no release: a reason, and what to do about it."""

    reason: str
    message: str


def checked(holder: Contender, seen: ObservedRelease, config: Config) -> tuple[Sequence[str], ReleaseProblem | None]:
    """The namespaces that the release is for, and what is in the way of it."""
    where = place_text(holder, seen, config)
    if problem := _name_problem(holder, seen.name, config):
        return (), ReleaseProblem("InvalidReleaseName", f"{where}: {problem}")
    try:
        targets = targets_of(holder, seen, config)
    except BadSelector as error:
        return (), ReleaseProblem("InvalidSelector", f"{where}: spec.projectNamespaceSelector.{error}")
    if not targets and (earlier := earlier_label(holder.home, config)):
        return (), ReleaseProblem(LABEL_CHANGED, label_changed(holder.project, earlier, config))
    if not targets:
        fix = "add one to the project" if config.project_label else "set or widen spec.projectNamespaceSelector"
        return (), ReleaseProblem(WITHOUT_TARGETS, f"there is no namespace to deploy this ProjectHelmChart for: {fix}")
    if problem := _obstacle(holder, seen, config):
        return targets, ReleaseProblem("NotOurs", f"{where}: {problem}")
    if problem := values_problem(holder.object):
        return targets, ReleaseProblem("InvalidValues", f"spec.values cannot become the values of a release: {problem}")
    return targets, None


def place_text(contender: Contender, seen: ObservedRelease, config: Config) -> str:
    """The release and its namespace, for messages."""
    return f"release {seen.name} in namespace {release_namespace(contender.key, seen.name, config)}"


def targets_of(holder: Contender, seen: ObservedRelease, config: Config) -> Sequence[str]:
    """The living namespaces of the project, sorted, then the release's own; none when the project has none (hpo-46).

    In single-namespace mode those that the selector matches; without one, none (hpo-56).

    Raises:
        BadSelector: the selector cannot be understood.
    """
    if config.project_label:
        found = sorted(each["metadata"]["name"] for each in seen.members if is_member(each, holder.project, config))
        return [*found, seen.name] if found and config.dedicated else found
    selector = (holder.object.get("spec") or {}).get("projectNamespaceSelector")
    if selector is None:
        return []
    # The CRD lets null stand for an empty value, as upstream's does.
    labels = {name: value or "" for name, value in (selector.get("matchLabels") or {}).items()}
    wanted = parse_selector({**selector, "matchLabels": labels})
    found = [each["metadata"]["name"] for each in seen.members if not is_terminating(each) and wanted.matches(labels_of(each))]
    return sorted(name for name in found if name not in config.system_namespaces)


def is_cleaning_up(holder: Contender, seen: ObservedRelease) -> bool:
    """Whether the cleanup label holds: this very installation has seen it first (hpo-49, hpo-50)."""
    if CLEANUP not in labels_of(holder.object):
        return False
    return annotations_of(holder.object).get(CLEANED_UP_BY, seen.installation) == seen.installation


def _name_problem(holder: Contender, name: str, config: Config) -> str:
    """Why its release cannot have that name, with the fix; empty when it can.

    A name that its author chooses may not be that of a registration or system namespace, be it there or not (a-31).
    """
    if problem := release_name_problem(name, config):
        return problem
    if not config.dedicated or (holder.chart is not None and holder.chart.singleton):
        return ""
    if name.startswith(REGISTRATION_PREFIX) or name in (*config.system_namespaces, SYSTEM_NAMESPACE):
        return f"the name {name} is kept for a registration or system namespace: choose another name for the ProjectHelmChart"
    return ""


def _obstacle(holder: Contender, seen: ObservedRelease, config: Config) -> str:
    """What is in the way and not ours to touch, with the fix; empty when nothing is (hpo-53)."""
    if config.dedicated and seen.namespace is not None:
        if not _is_ours(seen.namespace, holder.project):
            return (
                f"namespace {seen.name} exists and was not made for this release: choose another name for the ProjectHelmChart "
                f"or delete the namespace; an administrator may hand it over with the annotation {ADOPT}=true"
            )
        if _is_left_by_another_project(seen, holder.project):
            return (
                f"namespace {seen.name} has what a release of another project left in it: choose another name for the "
                "ProjectHelmChart, or ask an administrator to delete the namespace, or to hand it over with all that is in it by "
                f"the annotation {ADOPT}=true"
            )
    for live in (seen.helm_chart, seen.helm_release):
        if live is not None and is_foreign(live, config):
            return (
                f"{key_of(live)} exists and is somebody else's: choose another name "
                f"for the ProjectHelmChart; an administrator may delete it or hand it over with the annotation {ADOPT}=true"
            )
    wanted, place = release_namespace(holder.key, seen.name, config), _installed_in(seen.helm_chart)
    if place not in ("", wanted):
        enabled = "true" if place == seen.name else "false"
        return (
            f"it is installed in namespace {place}, and no release is moved, because its data would stay behind: delete the "
            "ProjectHelmChart and make it again, or ask an administrator to set "
            f"helmProjectOperator.projectReleaseNamespaces.enabled: {enabled} again"
        )
    return ""


def _installed_in(helm_chart: Object | None) -> str:
    """Where a HelmChart was asked to install, by us or by who had it before us; empty for what was edited since by hand."""
    if helm_chart is None or (
        owns(helm_chart, RELEASE_MANAGER, "spec") and not owns(helm_chart, RELEASE_MANAGER, "spec", "targetNamespace")
    ):
        return ""
    return str((helm_chart.get("spec") or {}).get("targetNamespace") or "")


def _is_ours(namespace: Object, project: str) -> bool:
    if is_made_for_release(namespace) or annotations_of(namespace).get(ADOPT) == "true":
        return True
    labels = labels_of(namespace)
    return OPERATED in labels and labels.get(PROJECT_ID) == project and not entries_of(namespace, REGISTRATION_MANAGER)


def _is_left_by_another_project(seen: ObservedRelease, project: str) -> bool:
    """Whether the namespace still has what a release of another project left: Secrets and claims are not handed on (a-32).

    Of whose release it is the HelmChart says first, which nobody but administrators can write beside us; the namespace's own
    marks may have been removed by somebody, and then only the HelmChart says it.
    """
    namespace = seen.namespace
    if annotations_of(namespace).get(ADOPT) == "true":
        return False
    if seen.helm_chart is not None and _project_in(held_by(seen.helm_chart)) == project:
        return False
    return (labels_of(namespace).get(PROJECT_ID) or _project_in(held_by(namespace)) or project) != project


def _project_in(made_for: str) -> str:
    """The project of ``<namespace>/<name>`` of a ProjectHelmChart; empty for none."""
    return project_of_registration_name(made_for.partition("/")[0])


def is_foreign(obj: Object, config: Config) -> bool:
    """Whether a HelmChart or HelmRelease of the release's name is somebody else's."""
    if owns(obj, RELEASE_MANAGER, "spec") or annotations_of(obj).get(ADOPT) == "true":
        return False
    operator, annotations = config.helm_project_operator, annotations_of(obj)
    names = ("", operator.controller_name, operator.helm_controller.external_controller_name)
    managed_by = annotations.get(CHART_MANAGED_BY, "") or annotations.get(RELEASE_MANAGED_BY, "")
    return OPERATED not in labels_of(obj) or managed_by not in names


def state_of_made(obj: Object) -> Hashable:
    """What of a HelmChart or HelmRelease its release rests on: of the status only what the ProjectHelmChart is told."""
    status, failed = obj.get("status") or {}, find_condition(obj, "Failed") or {}
    return (
        declared(obj),
        repr(entries_of(obj, RELEASE_MANAGER)),
        *(str(status.get(name)) for name in ("state", "description", "jobName", "observedGeneration")),
        *(str(failed.get(name)) for name in ("status", "reason", "message")),
    )


def state_of_namespace(namespace: Object, config: Config) -> Hashable:
    """What of a namespace releases rest on: of an ordinary one in which project it is, not the label that remembers that."""
    metadata = namespace["metadata"]
    place = place_of(namespace, config)
    if not config.project_label or place.is_a != "ordinary" or OPERATED in labels_of(namespace):
        return cast(Hashable, metadata["resourceVersion"])
    return metadata["uid"], place, is_terminating(namespace), tuple(sorted(annotations_of(namespace).items()))
