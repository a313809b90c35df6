"""What an event told of, as far as the object still says it: who wrote it then, and what that means to people.

One request for each event that is shown.  The API server keeps who wrote which fields and when, to the second; of what is deleted
it keeps nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from tenantry.api import Api
from tenantry.api.errors import ApiError
from tenantry.kit.console.story import SWEEP, At, Deed, in_words, seconds
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    NAMESPACE,
    PROJECT_HELM_CHART,
    ROLE_BINDING,
    Key,
    Object,
    annotations_of,
    is_terminating,
    labels_of,
)
from tenantry.model.limits import few
from tenantry.model.names import field_manager
from tenantry.model.rbac import subject_of

_OURS = field_manager("")
_HELM, _KUBERNETES = "helm", ("kube-", "k3s")
_RELEASE = "meta.helm.sh/release-name"
_RECORD = "sh.helm.release.v1."
_SECOND = 1.0
_LATE_S = 0.5
_RECENT_S = 20.0
_WATCHED = "tenantry.dev/aggregate-to-lock-source=true"


async def deed(at: At, api: Api, project_label: str, *, put_right: bool) -> Deed:
    """What is known of an event; ``put_right``: a function of ours wrote the object just afterwards."""
    if at.key == SWEEP:
        return Deed("The schedule came round, and every owner was looked at", "the schedule", changed=True)
    try:
        kind = await api.served(at.key.api_version, at.key.kind)
        read = api.get if at.key.kind in _SAYING else api.head
        live = await read(kind, at.key.name, at.key.namespace) if kind is not None else None
        if live is None:
            late = time.time() - at.when > _RECENT_S
            return Deed(
                f"{in_words(at.key)} {'was deleted, or changed before' if late else 'was deleted'}", "somebody", is_gone=True
            )
        found = told_of(at, live, project_label)
        if found.by:
            return found
        if put_right:
            return Deed(f"Somebody changed {in_words(at.key)}", "somebody", changed=True)
        return await _in_sight(at, api, found) if found.release else found
    except ApiError:  # who may not read it is told no more than its name
        return Deed(f"Something happened to {in_words(at.key)}")


def told_of(at: At, live: Object, project_label: str) -> Deed:
    """What the live object says of the event."""
    by = next(iter(_writers(at, live)), "")
    release = _release(live)
    if not by:
        since = any(seconds(each["time"]) > at.when for each in _others(live))
        return Deed(f"{in_words(at.key)} {'changed' if since else 'came into sight'}", release=release, changed=True)
    created = abs(seconds(live["metadata"]["creationTimestamp"]) + _SECOND / 2 - at.when) <= _SECOND + _LATE_S
    who, is_person = _who(by)
    return Deed(f"{who} {_words(live, at.key, created, project_label)}", who, is_person, release, changed=not created)


def _others(live: Object) -> list[Object]:
    """Which entries say when somebody else than a function of ours wrote it last."""
    entries = live["metadata"].get("managedFields") or ()
    return [each for each in entries if each.get("time") and not str(each.get("manager", "")).startswith(_OURS)]


def _writers(at: At, live: Object) -> list[str]:
    """Who else wrote just before the event; people first."""
    near = [each["manager"] for each in _others(live) if -_SECOND - _LATE_S <= seconds(each["time"]) - at.when <= _LATE_S]
    return sorted(near, key=lambda each: not _who(each)[1])


def _who(manager: str) -> tuple[str, bool]:
    """Whom a field manager stands for, and whether that is a person."""
    if manager.lower() == _HELM:  # it calls itself Helm for its records, and helm for the rest
        return "Helm", False
    if manager.startswith(_KUBERNETES):
        return "Kubernetes", False
    return ("Somebody" if manager.startswith("kubectl") else f"Somebody ({manager})"), True


def _release(live: Object) -> str:
    name: str = live["metadata"]["name"]
    if name.startswith(_RECORD):
        return name.removeprefix(_RECORD).rpartition(".v")[0]
    return str(annotations_of(live).get(_RELEASE) or "")


def _words(live: Object, key: Key, created: bool, project_label: str) -> str:
    """What was done, in a sentence without its subject."""
    say = _SAYING.get(key.kind)
    plain = f"{'created' if created else 'changed'} {in_words(key)}"
    return f"{plain}{say(live, project_label)}" if say is not None else plain


def _namespace(live: Object, project_label: str) -> str:
    if is_terminating(live):
        return ", which is being deleted"
    project = labels_of(live).get(project_label, "") if project_label else ""
    return f", in project {project}" if project else ", in no project"


def _binding(live: Object, _: str) -> str:
    namespace = live["metadata"].get("namespace") or ""
    ref, subjects = live.get("roleRef") or {}, live.get("subjects") or ()
    whom = few([str(subject_of(each, namespace)) for each in subjects], 5) or "nobody"
    return f": {ref.get('kind', '')}/{ref.get('name', '')} for {whom}"


def _chart(live: Object, _: str) -> str:
    return f": the project asks for the chart {(live.get('spec') or {}).get('helmApiVersion', '')}"


_SAYING: Mapping[str, Callable[[Object, str], str]] = {
    NAMESPACE.kind: _namespace,
    ROLE_BINDING.kind: _binding,
    PROJECT_HELM_CHART.kind: _chart,
}
"""Kinds whose contents say more than that they changed."""


async def _in_sight(at: At, api: Api, found: Deed) -> Deed:
    """Nobody wrote it then: where somebody has just allowed locks to see more, that is why it came into sight."""
    heads = [each["metadata"] for each in (await api.list(CLUSTER_ROLE, label_selector=_WATCHED, metadata_only=True)).items]
    new = [each["name"] for each in heads if 0 <= at.when - seconds(each["creationTimestamp"]) <= _RECENT_S]
    if not new:
        return found
    return Deed(
        f"Somebody allowed locks to watch and write more kinds, by ClusterRole {few(sorted(new))}", "somebody", changed=True
    )
