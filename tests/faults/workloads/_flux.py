"""Steps and promises that the workloads of Flux tenancy share: sources, who may use them, and what is written where.

All runs share one TenancyProfile and one AccessIndex.  Who is granted what is worked out here once more, by the words of the
specification (2.1, 2.2) and not by the code of a function.  Of Flux itself only its kinds are there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from tenantry.local.deployment import deployment_folder, documents
from tenantry.local.followed import stand_in
from tenantry.model.conditions import find_condition
from tenantry.model.flux.consumers import APPLIED
from tenantry.model.flux.names import ACCESS_FROM, ACCESS_INDEX, SOURCE_GRANT, SOURCE_KINDS, TENANCY_PROFILE
from tenantry.model.flux.onboarding import GIT_REPOSITORY
from tenantry.model.kinds import EVENT, NAMESPACE, Key, Kind, Object, annotations_of, is_terminating, object_of
from tenantry.model.pointer import pointer
from tenantry.testing.naming import tag_of
from tenantry.testing.workload import Run, Step, Workload, apply, edit
from tenantry.testing.world import Moment

OWNER, SOURCE, GRANT, KEY = "s-@", "app-@", "g-@", "GitRepository/s-@/app-@"
"""A namespace, a source in it with a SourceGrant, and how the index calls it."""
A, B = {"team": "a-@"}, {"team": "b-@"}
PROFILE = {"profile": "multi-tenant"}
STANDING, EVERYWHERE = "GitRepository/standing/app", "env=prod"
"""What the index of locks has for all runs: a grant that namespaces gain and lose with a label."""
Labels = Mapping[str, str]
Pair = tuple[str, str, str]
"""One selector of a source: class, key and text in the index."""


# -- steps -------------------------------------------------------------------------------------------------


def source(*labels: Labels, text: str = "", **spec: Any) -> Step:
    """A step that declares the source, with an annotation that grants it to namespaces with these labels, or with such a text."""
    said = text or (json.dumps(access_from(labels)) if labels else "")
    return apply(GIT_REPOSITORY.kind, SOURCE, OWNER, annotations={ACCESS_FROM: said} if said else {}, spec={"url": "u", **spec})


def grant(*labels: Labels, name: str = GRANT, access: Sequence[str] = ("Read",), of: str = SOURCE) -> Step:
    """A step that declares a SourceGrant."""
    reference = {"kind": GIT_REPOSITORY.kind, "name": of}
    spec = {"sourceRef": reference, "accessFrom": access_from(labels), "access": list(access)}
    return apply(SOURCE_GRANT.kind, name, OWNER, spec=spec)


def access_from(labels: Iterable[Labels]) -> Object:
    """``accessFrom`` with a selector for each of these."""
    return {"namespaceSelectors": [{"matchLabels": dict(each)} for each in labels]}


def shared(text: str = "", key: str = KEY) -> Step:
    """A step that writes an entry of the index by hand, or takes it out."""
    return edit(ACCESS_INDEX.kind, "default", "", pointer("spec", "read", key), *([text] if text else []))


def of_index(field: str, value: Any) -> Step:
    """A step that writes a field of the index by hand."""
    return edit(ACCESS_INDEX.kind, "default", "", pointer("spec", field), value)


def profile(**spec: Any) -> Step:
    """A step that sets fields of the one TenancyProfile."""
    steps = [{"op": "add", "path": pointer("spec", name), "value": value} for name, value in spec.items()]
    return lambda run: run.edit(TENANCY_PROFILE.kind, "default", "", *steps)


async def without_index(run: Run) -> None:
    """Somebody takes the index away; without it nobody decides anything."""
    await run.delete(ACCESS_INDEX.kind, "default")


async def index_away_and_back(run: Run) -> None:
    """The same, and what wrote it writes it again."""
    found = await run.get(ACCESS_INDEX.kind, "default")
    assert found is not None
    await without_index(run)
    await run.settle()
    await run.create(object_of(ACCESS_INDEX, {"name": "default"}, spec=found["spec"]))


# -- what is granted ---------------------------------------------------------------------------------------


def pairs_of(index: Object | None) -> set[Pair]:
    """The selectors in an index."""
    spec = (index or {}).get("spec") or {}
    entries = ((each, key, text) for each in ("read", "write") for key, text in (spec.get(each) or {}).items())
    return {(each, key, one) for each, key, text in entries for one in text.split("|")}


def declared_pairs(carriers: Iterable[Object], settable: Iterable[str] = ()) -> set[Pair]:
    """What sources and SourceGrants give; nothing by a key that tenants may set, and nothing for a source that is not there."""
    found: set[Pair] = set()
    every = [each for each in carriers if not is_terminating(each)]
    for git in (each for each in every if each["kind"] == GIT_REPOSITORY.kind):
        place, name = git["metadata"]["namespace"], git["metadata"]["name"]
        said = [(("read", "write"), _parsed(annotations_of(git).get(ACCESS_FROM)))]
        said += [
            ([access.lower() for access in each["spec"]["access"]], each["spec"]["accessFrom"]["namespaceSelectors"])
            for each in every
            if each["kind"] == SOURCE_GRANT.kind
            and (each["metadata"]["namespace"], each["spec"]["sourceRef"]["name"]) == (place, name)
        ]
        for classes, selectors in said:
            texts = [_text(each["matchLabels"]) for each in selectors if not set(each["matchLabels"]) & set(settable)]
            found |= {(each, f"GitRepository/{place}/{name}", text) for each in classes for text in texts}
    return found


def _parsed(annotation: str | None) -> list[Object]:
    try:
        return list(json.loads(annotation or "{}").get("namespaceSelectors") or ())
    except ValueError:
        return []


def _text(labels: Labels) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "*"


def is_granted(index: Object, key: str, labels: Labels) -> bool:
    """Whether the index opens a source to a namespace with these labels: any selector, all of its pairs."""
    texts = {text for each, name, text in pairs_of(index) if (each, name) == ("read", key)}
    return any(text == "*" or {tuple(pair.split("=", 1)) for pair in text.split(",")} <= set(labels.items()) for text in texts)


# -- what is in force, or was a moment ago -----------------------------------------------------------------


def choices(moment: Moment, kind: str, name: str = "") -> list[list[Object | None]]:
    """Of each object of a kind, or of one, what it is and what it was before its last change; None where it is gone, or was."""
    found = []
    for key, states in moment.all_declared(kind):
        if name in ("", key.name):
            is_away = key not in moment.objects or _was_away(moment.past[key])
            found.append([*([None] if is_away else []), *states])
    return found


def _was_away(states: Sequence[Object]) -> bool:
    """Whether an object's last change was that it was made anew after it had gone."""
    newest, parts = states[-1]["metadata"], ("labels", "annotations", "generation")
    for each in (state["metadata"] for state in reversed(states)):
        if each["uid"] != newest["uid"]:
            return True
        if any(each.get(part) != newest.get(part) for part in parts):
            return False
    return False


def settable_keys(profiles: Iterable[Object | None]) -> Iterator[list[str]]:
    """The keys that tenants may set, by each of these profiles."""
    for each in profiles:
        yield ((each or {}).get("spec") or {}).get("tenantLabelKeys") or []


def worlds(moment: Moment) -> Iterator[set[Pair]]:
    """What is declared, in every way to put together what is in force, or was a moment ago."""
    every = [*choices(moment, GIT_REPOSITORY.kind), *choices(moment, SOURCE_GRANT.kind)]
    for settable in settable_keys(next(iter(choices(moment, TENANCY_PROFILE.kind)), [None])):
        for chosen in product(*every):
            yield declared_pairs((each for each in chosen if each is not None), settable)


def run_of(keys: Iterable[Key]) -> str:
    """The run that objects belong to."""
    return next((tag for each in keys if (tag := tag_of(each.namespace, each.name))), "")


# -- workloads ---------------------------------------------------------------------------------------------


def is_well(grant_: Object) -> bool:
    """Whether a SourceGrant says, as it is now, that all of it counts."""
    said = find_condition(grant_, "ACLValid") or {}
    return (said.get("status"), said.get("observedGeneration")) == ("True", grant_["metadata"]["generation"])


def of_flux(
    function: str, service: str, index: Object, *, watched: Sequence[Kind], begins: Sequence[Object] = (), **options: Any
) -> Workload:
    """A workload of a function's duty for Flux, without scenarios; ``index`` is the spec of the AccessIndex at the beginning."""
    crds = [stand_in(each) for each in (*SOURCE_KINDS, *APPLIED)]
    for each in crds:
        each["spec"]["versions"][0]["subresources"] = {"status": {}}
    sources = documents(deployment_folder("knative") / "flux" / "source.yaml")
    first = [
        object_of(TENANCY_PROFILE, {"name": "default"}, spec=PROFILE),
        object_of(ACCESS_INDEX, {"name": "default"}, spec=index),
    ]
    return Workload(
        function,
        services=[service],
        installed=crds,
        sources=[each for each in sources if each["metadata"]["name"].startswith(service)],
        begins=[*first, *begins],
        shared=[ACCESS_INDEX, TENANCY_PROFILE],
        watched=(NAMESPACE, *watched, EVENT),
        largest=700,  # most runs have the cluster for themselves, and three sweeps each: those of runs that are over are read too
        **options,
    )
