"""What the thief tries who has the identity that locks consumers of Flux (a-44)."""

from __future__ import annotations

from fence_capabilities import TAKES_ALONG
from people import pointer
from thieves import Attack, Theft, apply, create, delete, patch

from tenantry.model.flux.consumers import CONSUMER_KINDS
from tenantry.model.flux.names import (
    ACCESS_DENIED,
    ACCESS_INDEX,
    DEFAULT,
    LOCK_FINALIZER,
    LOCKED,
    SUSPENDED_BY_LOCK,
    TENANCY_PROFILE,
)
from tenantry.model.kinds import NAMESPACE, SECRET, Object
from tenantry.testing.objects import obj

HOME = "fence-access"
KUSTOMIZATION = CONSUMER_KINDS[0]
MARKS = {LOCKED: ACCESS_DENIED, SUSPENDED_BY_LOCK: "true"}
SPEC = {"interval": "1m", "prune": True, "sourceRef": {"kind": "GitRepository", "name": "a", "namespace": "other"}}
ONLY = "only what stops it"
NEITHER = "neither makes nor deletes"


def _kustomization(name: str, **parts: Object) -> Object:
    spec = {**SPEC, **parts.pop("spec", {})}
    return obj(KUSTOMIZATION, name, HOME, metadata={"annotations": {"team": "x"}, **parts}, spec=spec)


def _annotation(key: str) -> str:
    return f"/metadata/annotations/{pointer(key)}"


DELIVERED = {
    **_kustomization("delivered", labels={"team": "x"}, spec={"path": "./y"}),
    "status": {"inventory": {"entries": []}},
}


THEFT = Theft(
    function="lock-enforcement-access",
    check="a-44",
    scene=[
        (NAMESPACE, obj(NAMESPACE, HOME)),
        (KUSTOMIZATION, _kustomization("plain", finalizers=["finalizers.fluxcd.io"])),
        (KUSTOMIZATION, _kustomization("own", spec={"suspend": True})),
        (KUSTOMIZATION, _kustomization("locked", spec={"suspend": True}, annotations=MARKS, finalizers=[LOCK_FINALIZER])),
        (KUSTOMIZATION, DELIVERED),
        (TENANCY_PROFILE, obj(TENANCY_PROFILE, DEFAULT)),
    ],
    needs=[
        patch(
            KUSTOMIZATION,
            "plain",
            HOME,
            *(("add", _annotation(key), value) for key, value in MARKS.items()),
            ("add", "/spec/suspend", True),
            ("add", "/metadata/finalizers/-", LOCK_FINALIZER),
        ),
        patch(KUSTOMIZATION, "plain", HOME, ("add", "/status", {"conditions": []}), subresource="status"),
        patch(KUSTOMIZATION, "delivered", HOME, ("add", "/status/conditions", []), subresource="status"),
        patch(
            KUSTOMIZATION,
            "locked",
            HOME,
            *(("remove", _annotation(key), None) for key in MARKS),
            ("remove", "/spec/suspend", None),
            ("add", "/metadata/finalizers", []),
        ),
        apply(TENANCY_PROFILE, obj(TENANCY_PROFILE, DEFAULT, status={"violationCount": 0}), "status"),
    ],
    attacks=[
        Attack("a stop without a mark", patch(KUSTOMIZATION, "plain", HOME, ("add", "/spec/suspend", True)), "with the mark"),
        Attack(
            "the end of its user's suspension", patch(KUSTOMIZATION, "own", HOME, ("remove", "/spec/suspend", None)), "ends only"
        ),
        Attack("another path", patch(KUSTOMIZATION, "plain", HOME, ("add", "/spec/path", "./x")), ONLY),
        Attack("another source", patch(KUSTOMIZATION, "locked", HOME, ("remove", "/spec/sourceRef/namespace", None)), ONLY),
        Attack("another account", patch(KUSTOMIZATION, "plain", HOME, ("add", "/spec/serviceAccountName", "x")), ONLY),
        Attack(
            "what was delivered",
            patch(KUSTOMIZATION, "plain", HOME, ("add", "/status", {"inventory": {"entries": []}}), subresource="status"),
            "writes conditions only",
        ),
        Attack(
            "another inventory",
            patch(KUSTOMIZATION, "delivered", HOME, ("add", "/status/inventory/entries", [{"id": "x"}]), subresource="status"),
            "writes conditions only",
        ),
        Attack(
            "no inventory",
            patch(KUSTOMIZATION, "delivered", HOME, ("remove", "/status/inventory", None), subresource="status"),
            "writes conditions only",
        ),
        Attack(
            "the end of a label",
            patch(KUSTOMIZATION, "delivered", HOME, ("remove", "/metadata/labels/team", None)),
            "may not write the labels team",
        ),
        Attack("no path", patch(KUSTOMIZATION, "delivered", HOME, ("remove", "/spec/path", None)), ONLY),
        Attack(
            "another annotation",
            patch(KUSTOMIZATION, "plain", HOME, ("add", _annotation("mine"), "x")),
            "annotations mine",
        ),
        Attack(
            "another finalizer",
            patch(KUSTOMIZATION, "plain", HOME, ("add", "/metadata/finalizers/-", "example.com/held")),
            "may not write the finalizers example.com/held",
        ),
        Attack(
            "labels", patch(KUSTOMIZATION, "plain", HOME, ("add", "/metadata/labels", {"team": "x"})), "may not write the labels"
        ),
        Attack(
            "annotations of others",
            patch(KUSTOMIZATION, "plain", HOME, ("remove", _annotation("team"), None)),
            "annotations team",
        ),
        Attack(
            "the finalizer of Flux",
            patch(KUSTOMIZATION, "plain", HOME, ("add", "/metadata/finalizers", [])),
            "may not write the finalizers finalizers.fluxcd.io",
        ),
        Attack(
            "an owner that takes it along",
            patch(KUSTOMIZATION, "plain", HOME, ("add", "/metadata/ownerReferences", [TAKES_ALONG])),
            "writes no owner references",
        ),
        Attack("a consumer of its own", create(KUSTOMIZATION, _kustomization("mine")), NEITHER),
        Attack("the end of a consumer", delete(KUSTOMIZATION, "plain", HOME), NEITHER),
        Attack("another profile", patch(TENANCY_PROFILE, DEFAULT, "", ("add", "/spec/mode", "Audit")), "cannot"),
        Attack("another index", patch(ACCESS_INDEX, DEFAULT, "", ("add", "/spec/read", {})), "cannot"),
        Attack("a Secret", patch(SECRET, "s", HOME, ("add", "/data", {})), "cannot"),
    ],
)
