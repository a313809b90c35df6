"""What the workloads of the hand-over share."""

from __future__ import annotations

import copy
from typing import Any

from tenantry.local.deployment import deployment_folder, documents
from tenantry.local.followed import stand_in
from tenantry.model.kinds import EVENT, NAMESPACE, Object, annotations_of, object_of
from tenantry.model.paas.names import APPLICATION_SET, ELEMENTS, PAAS
from tenantry.testing.workload import Step, Workload, apply, together
from tenantry.testing.world import Moment

from ._paas import P, Spec, X, configure, enabled, of_paas, paas, present, worlds

SERVICE, PLACE, SET = "release-provisioning-paas", "argo-system", "as-@"


def given(owner: Object, config: Spec) -> list[tuple[str, Spec]]:
    """ApplicationSets and the elements that a Paas has there."""
    found = []
    for name, asked in enabled(owner).items():
        known = (config.get("capabilities") or {}).get(name) or {}
        fields = {key: each["default"] for key, each in (known.get("custom_fields") or {}).items() if "default" in each}
        element = {**fields, **(asked.get("custom_fields") or {}), "paas": owner["metadata"]["name"]}
        required = {key for key, each in (known.get("custom_fields") or {}).items() if each.get("required")}
        if known.get("applicationset") and required <= set(element):
            found.append((known["applicationset"], element))
    return found


def elements(found: Object | None) -> list[Any]:
    """The elements of the first list generator."""
    lists = [each["list"] for each in ((found or {}).get("spec") or {}).get("generators") or () if "list" in each]
    return list(lists[0].get("elements") or ()) if lists else []


def _rest(found: Object, ours: set[str]) -> Any:
    """What of an ApplicationSet is no element of ours."""
    made = copy.deepcopy(found["spec"])
    for each in made["generators"]:
        if "list" in each:
            each["list"]["elements"] = [one for one in each["list"].get("elements") or () if one.get("paas") not in ours]
    return made


def changes_only_elements_of_ours(moment: Moment) -> str:
    """Elements that no Paas has, other generators and fields stay byte for byte; no ApplicationSet is made or deleted."""
    before, after = moment.change.before, moment.change.after
    if not moment.by or moment.change.key.kind != APPLICATION_SET.kind:
        return ""
    if before is None or after is None:
        return "made or deleted"
    ours = {key.name for key in moment.past if key.kind == PAAS.kind}
    return "" if _rest(before, ours) == _rest(after, ours) else "changed what is not ours"


def hands_over_what_is_declared(moment: Moment) -> str:
    """No element that no declaration in force, or in force a moment ago, gives; who goes on being declared keeps his."""
    key = moment.change.key
    if not moment.by or key.kind != APPLICATION_SET.kind:
        return ""
    before, after = elements(moment.change.before), elements(moment.change.after)
    extra = [each for each in after if each not in before]
    lost = {each.get("paas") for each in before} - {each.get("paas") for each in after}
    for owners, config, _ in worlds(moment):
        wanted = [each for owner in owners.values() for name, each in given(owner, config) if name == key.name]
        extra = [each for each in extra if each not in wanted]
        lost &= {each["paas"] for each in wanted}
    return f"added {extra}, took {sorted(map(str, lost))}" if extra or lost else ""


def holds_what_is_declared(objects: list[Object]) -> str:
    """In the end the ApplicationSets have exactly the elements that are declared, once and in order."""
    owners, config, _ = present(objects)
    every = [(name, each) for owner in owners.values() for name, each in given(owner, config)]
    wrong = []
    for found in objects:
        if found["kind"] != APPLICATION_SET.kind:
            continue
        wanted = [each for name, each in every if name == found["metadata"]["name"]]
        there = [each for each in elements(found) if each.get("paas") in owners]
        if there != sorted(wanted, key=lambda each: str(each["paas"])) or (ELEMENTS in annotations_of(found)) != bool(wanted):
            wrong.append(f"{there} in place of {wanted}")
    return "; ".join(wrong)


ON, OFF, THEIRS = {"enabled": True}, {"enabled": False}, {"cluster": "in", "paas": "p-@-y"}
"""An element of somebody whose name begins with that of a Paas, and who is none."""
CAPABILITY = {"applicationset": SET, "custom_fields": {"team": {"default": "t"}}}
CONFIGURED = configure(capabilities={"c-@": CAPABILITY})


def application_set(name: str = SET) -> Step:
    """A step that makes an ApplicationSet with an element and a generator of others."""
    generators = [{"git": {"repoURL": "https://git.example.com/all"}}, {"list": {"elements": [THEIRS]}}]
    return apply("ApplicationSet", name, PLACE, spec={"generators": generators, "template": {"spec": {"weight": 1.5}}})


def one(**changes: Any) -> Step:
    """The first Paas, with a capability."""
    return paas(P, capabilities={"c-@": {**ON, **changes}})


TWO = paas(X, capabilities={"c-@": ON})
BOTH = together(one(), TWO)
READY = [together(CONFIGURED, application_set()), BOTH]


def hand_over() -> Workload:
    """A workload of release-provisioning for Paas, without scenarios."""
    made = of_paas(
        "release-provisioning",
        SERVICE,
        {"clusterwide_argocd_namespace": PLACE},
        safe=[changes_only_elements_of_ours, hands_over_what_is_declared],
        ends=[holds_what_is_declared],
        installed=[stand_in(APPLICATION_SET), object_of(NAMESPACE, {"name": PLACE})],
        sources=[
            each
            for each in documents(deployment_folder("knative") / "argo" / "source.yaml")
            if each["metadata"]["name"].startswith(SERVICE)
        ],
        watched=(PAAS, APPLICATION_SET, EVENT),
    )
    made.handover = [ELEMENTS]
    return made
