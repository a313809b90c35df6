"""Sizes and figures of Flux tenancy; what the AccessIndex costs to write, and what policies cost a request for a consumer."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.bench import stack
from tests.bench.wire import Wire

from scope_binding.sources.plan import plan_index
from scope_binding.sources.seen import IndexSeen
from tenantry.api import Api
from tenantry.engine.write import Writer
from tenantry.local.control_plane import ControlPlane
from tenantry.local.followed import stand_in
from tenantry.local.install import until_served
from tenantry.local.policies import until_in_force
from tenantry.model import limits
from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.consumers import CONSUMER_KINDS
from tenantry.model.flux.names import (
    ACCESS_INDEX,
    DEFAULT,
    SHARED_KINDS,
    SOURCE_GRANT,
)
from tenantry.model.flux.onboarding import KUSTOMIZATION
from tenantry.model.flux.policies import GENERATED
from tenantry.model.flux.policies.parts import LABELS
from tenantry.model.kinds import CUSTOM_RESOURCE_DEFINITION, NAMESPACE, Object
from tenantry.testing.objects import obj

OWNER, EXEMPT = "bench-owner", "flux-system"
ALL, REST = {"team": "bench"}, {"team": "other"}
DRY = "dryRun=All"
_OURS = ",".join(f"{key}={value}" for key, value in LABELS.items())


@dataclass(frozen=True)
class Sizes:
    """How much is made, and how often it is done."""

    grants: int = 1_000
    many: int = 10_000
    used: int = 100
    consumers: int = 1_000
    namespaces: int = 50
    index_writes: int = 20
    blocks: int = 10
    asked: int = 150
    rounds: int = 5
    revocations: int = 200
    rest_s: float = 30.0


QUICK = Sizes(
    grants=100,
    many=1_000,
    used=10,
    consumers=50,
    namespaces=5,
    index_writes=3,
    blocks=2,
    asked=20,
    rounds=1,
    revocations=10,
    rest_s=3.0,
)


@dataclass
class IndexFigures:
    """The index at so many grants: milliseconds of each write, and bytes as it is stored."""

    grants: int
    write_ms: list[float] = field(default_factory=list)
    size: int = 0


@dataclass
class Figures:
    """Milliseconds of requests with policies and without, by what was asked; seconds of locks; milliseconds of revocations."""

    sizes: Sizes
    policies: int = 0
    index: list[IndexFigures] = field(default_factory=list)
    having: dict[str, list[float]] = field(default_factory=dict)
    bare: dict[str, list[float]] = field(default_factory=dict)
    floor_s: float = 0.0
    stopped_s: list[float] = field(default_factory=list)
    told_s: list[float] = field(default_factory=list)
    freed_s: list[float] = field(default_factory=list)
    each_stopped_s: list[float] = field(default_factory=list)
    each_told_s: list[float] = field(default_factory=list)
    cpu: dict[str, float] = field(default_factory=dict)
    revoked_ms: list[float] = field(default_factory=list)
    granted_ms: list[float] = field(default_factory=list)
    rest_writes: float = 0.0


# -- what people write -------------------------------------------------------------------------------------------------


def source_key(namespace: str, name: str) -> str:
    """A source as the index calls it."""
    return f"GitRepository/{namespace}/{name}"


def kustomization(namespace: str, name: str, of: str, source: str) -> Object:
    """A consumer of a source of a namespace; of its own where that is empty."""
    named = {"kind": "GitRepository", "name": source, **({"namespace": of} if of else {})}
    spec = {"interval": "10m", "prune": True, "path": "./", "serviceAccountName": "flux", "sourceRef": named}
    return obj(KUSTOMIZATION, name, namespace, spec=spec)


def source_grant(name: str, namespace: str, selected: Object, *labels: Object) -> Object:
    """A SourceGrant to namespaces with any of these labels."""
    spec = {**selected, "accessFrom": {"namespaceSelectors": [{"matchLabels": each} for each in labels]}}
    return obj(SOURCE_GRANT, name, namespace, spec=spec)


def selectors(*labels: Object) -> list[Object]:
    """A JSON patch that grants to namespaces with any of these labels, and to no others."""
    value = [{"matchLabels": each} for each in labels]
    return [{"op": "replace", "path": "/spec/accessFrom/namespaceSelectors", "value": value}]


async def prepare(wire: Wire, api: Api, sizes: Sizes) -> list[str]:
    """Flux' kinds, as CRDs that take any fields, and the namespaces that use sources; returns these."""
    for kind in (*SHARED_KINDS, *CONSUMER_KINDS):
        crd = stand_in(kind)
        crd["spec"]["versions"][0]["subresources"] = {"status": {}}
        await wire.do("POST", CUSTOM_RESOURCE_DEFINITION.path(), crd)
        await until_served(api, crd)
    users = [f"bench-user-{number:03}" for number in range(sizes.namespaces)]
    spaces = [obj(NAMESPACE, name, labels=ALL) for name in users] + [obj(NAMESPACE, name) for name in (OWNER, EXEMPT)]
    await stack.create(wire, [(NAMESPACE, each) for each in spaces])
    return users


# -- the index ---------------------------------------------------------------------------------------------------------


async def written(api: Api, grants: int, used: int, writes: int) -> IndexFigures:
    """The index with so many grants of one selector each, written as scope-binding does; each write changes all texts."""
    figures = IndexFigures(grants)
    for turn in range(writes + 1):
        read = {source_key(f"dev-team{at // 20:03}", f"app{at:05}"): f"team=t{turn:02}wo" for at in range(grants - used)}
        read |= {source_key(OWNER, f"app{at:05}"): "team=bench" for at in range(used)}
        entries = AccessEntries(read, {}, {}, ("team",), complete=True)
        live = await api.get(ACCESS_INDEX, DEFAULT)
        plan = plan_index(IndexSeen(live, entries, frozenset({"GitRepository"}), limits.GRANTS))
        began = time.perf_counter()
        outcome = await Writer(api, "scope-binding").write(plan)
        if turn:  # the first one makes it
            figures.write_ms.append((time.perf_counter() - began) * 1000)
        if outcome.refusals or outcome.transient or outcome.writes != 1:
            raise RuntimeError(f"the index was not written: {outcome}")
    stored = await api.get(ACCESS_INDEX, DEFAULT)
    figures.size = len(json.dumps(stored, separators=(",", ":")))
    return figures


# -- admission ---------------------------------------------------------------------------------------------------------


async def admission(plane: ControlPlane, api: Api, user: str, figures: Figures) -> None:
    """Dry runs of three sorts in turn, one at a time, in blocks with all policies of Flux tenancy and with none."""
    bindings = [each for kind in GENERATED[:2] for each in (await api.list(kind, label_selector=_OURS)).items]
    figures.policies = len(bindings)
    sorts = {
        "a local reference": kustomization(user, "asked", "", "app"),
        "a granted reference": kustomization(user, "asked", OWNER, "app00001"),
        "a reference of an exempt namespace": kustomization(EXEMPT, "asked", OWNER, "nothing"),
    }
    for name in sorts:
        figures.having[name], figures.bare[name] = [], []
    async with stack.admin(plane, 1) as wire:
        for number in range(figures.sizes.blocks):
            for bare in (False, True) if number % 2 == 0 else (True, False):
                stack.say(f"dry runs {'without policies' if bare else 'with all policies'}, block {number + 1}")
                await _bound(api, bindings, away=bare)
                await stack.idle(plane)
                into = figures.bare if bare else figures.having
                for at in range(figures.sizes.asked + 10):
                    for name, body in sorts.items():
                        began = time.perf_counter()
                        await wire.do("POST", f"{KUSTOMIZATION.path(body['metadata']['namespace'])}?{DRY}", body)
                        if at >= 10:  # the first ones find caches empty
                            into[name].append((time.perf_counter() - began) * 1000)
        await _bound(api, bindings, away=False)


async def _bound(api: Api, bindings: Sequence[Object], *, away: bool) -> None:
    kinds = {kind.kind: kind for kind in GENERATED}
    for each in bindings:
        kind, name = kinds[each["kind"]], each["metadata"]["name"]
        there = await api.get(kind, name) is not None
        if away and there:
            await api.delete(kind, name)
        elif not away and not there:
            kept = {part: each["metadata"][part] for part in ("name", "labels")}
            await api.create(kind, {**each, "metadata": kept})
    await until_in_force(api)
