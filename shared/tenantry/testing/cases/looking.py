"""Whether what a test expects is so, asked again until it is, or until its time is up."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import NamedTuple

from tenantry.api.errors import ApiError, KindNotServed, RefusedError, TransientError
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import Object
from tenantry.testing.awaiting import eventually
from tenantry.testing.cases.files import Case
from tenantry.testing.cases.form import Access, Check, Condition, Refused
from tenantry.testing.cases.ground import Ground, NotAtRest
from tenantry.testing.cases.matching import Unlike, path_of, unlike
from tenantry.testing.cases.people import Impossible, told
from tenantry.testing.cases.written import Place

_CLOSE = 3
"""Of objects without a name the closest are told, at most so many."""


class Finding(NamedTuple):
    """What is not as expected: where the test says it, what is wrong, and further lines."""

    place: Place
    said: str
    more: tuple[str, ...] = ()


class Looking:
    """Looks at one cluster for one step of a test, whose checks wait together until the cluster is at rest."""

    def __init__(self, ground: Ground, case: Case) -> None:
        self._ground = ground
        self._people = ground.people
        self._case = case
        self._resting: asyncio.Task[None] | None = None

    async def _at_rest(self, within: float) -> None:
        if self._resting is None:
            self._resting = asyncio.create_task(self._ground.at_rest(within))
        await asyncio.shield(self._resting)

    async def at(self, check: Check, place: Place, until: float) -> list[Finding]:
        """What is not as a check wants it, when it is so until ``until`` (monotonic seconds); nothing as soon as all of it is.

        What must not be there, or not be allowed, is looked at when everything that was done has had its effect.
        """
        place = (*place, check.what)
        if check.what in ("absent", "cannot"):
            try:
                await self._at_rest(max(1.0, until - time.monotonic()))
            except NotAtRest as error:
                return [Finding(place, str(error))]
        last: list[Finding] = []

        async def look() -> bool:
            nonlocal last
            try:
                last = await self._once(check)
            except (Impossible, KindNotServed) as error:
                last = [Finding((), str(error))]
            except (TransientError, RefusedError) as error:
                last = [Finding((), f"the API server answers: {told(error)}")]
            return not last

        with suppress(AssertionError):
            await eventually(look, within=max(0.0, until - time.monotonic()))
        return [Finding((*place, *each.place), each.said, each.more) for each in last]

    async def _once(self, check: Check) -> list[Finding]:
        match check:
            case Check(expect=dict(wanted)):
                return await self._expected(wanted, check.exact)
            case Check(absent=dict(unwanted)):
                return await self._absent(unwanted)
            case Check(can=Access() as access):
                return await self._allowed(access, allowed=True)
            case Check(cannot=Access() as access):
                return await self._allowed(access, allowed=False)
            case Check(condition=Condition() as condition):
                return await self._condition(condition)
            case Check(refused=Refused() as refused):
                return await self._refused(refused)
        raise AssertionError(check)

    async def _candidates(self, wanted: Object) -> list[Object]:
        """The objects that could be meant: the one of that name, or all of the kind, in the namespace if one is given."""
        kind, metadata = await self._people.kind_of(wanted), wanted.get("metadata", {})
        name, namespace = metadata.get("name"), metadata.get("namespace", "")
        if name and (namespace or not kind.namespaced):
            found = await self._people.admin.get(kind, name, namespace)
            return [found] if found is not None else []
        listed = (await self._people.admin.list(kind, namespace)).items
        return [each for each in listed if name in (None, each["metadata"]["name"])]

    async def _expected(self, wanted: Object, exact: list[str]) -> list[Finding]:
        found = await self._candidates(wanted)
        if not found:
            return [Finding((), f"{_called(wanted)} is not there", await self._instead(wanted))]
        compared = [(each, list(unlike(wanted, each, exact))) for each in found]
        if any(not differences for _, differences in compared):
            return []
        compared.sort(key=lambda each: (len(each[1]), sum(one.missing for one in each[1])))
        closest = compared[: 1 if wanted.get("metadata", {}).get("name") else _CLOSE]
        if len(closest) == 1:
            live, differences = closest[0]
            return [Finding(each.place, f"{_called(live)}: {_differs(each)}") for each in differences]
        lines = tuple(f"{_called(live)}: {_differs(differences[0])}" for live, differences in closest)
        return [Finding((), f"none of {len(found)} objects is like {_called(wanted)}; the closest:", lines)]

    async def _instead(self, wanted: Object) -> tuple[str, ...]:
        """What else there is of that kind in the namespace: a name is easily mistyped."""
        kind, namespace = await self._people.kind_of(wanted), wanted.get("metadata", {}).get("namespace", "")
        if not kind.namespaced or not namespace:
            return ()
        names = [each["metadata"]["name"] for each in (await self._people.admin.list(kind, namespace)).items]
        return (f"in namespace {namespace} there is: {', '.join(names[:8]) or f'no {kind.kind}'}",)

    async def _absent(self, unwanted: Object) -> list[Finding]:
        there = [each for each in await self._candidates(unwanted) if not any(unlike(unwanted, each))]
        return [Finding((), f"{_called(each)} is there, and should not be") for each in there]

    async def _allowed(self, access: Access, *, allowed: bool) -> list[Finding]:
        found = []
        for number, verb in enumerate(access.verbs):
            if await self._people.may(access, verb) != allowed:
                what = f"{access.resource}{f'/{access.name}' if access.name else ''}"
                where = f" in {access.namespace}" if access.namespace else " in the whole cluster"
                groups = ", ".join(access.groups)
                who = f"{access.user}{f' ({groups})' if groups else ''}"
                found.append(Finding(("verbs", number), f"{who} {'may not' if allowed else 'may'} {verb} {what}{where}"))
        return found

    async def _condition(self, wanted: Condition) -> list[Finding]:
        reference: Object = {
            "apiVersion": wanted.api_version,
            "kind": wanted.kind,
            "metadata": {"name": wanted.name, **({"namespace": wanted.namespace} if wanted.namespace else {})},
        }
        found = await self._candidates(reference)
        if not found:
            return [Finding((), f"{_called(reference)} is not there", await self._instead(reference))]
        live = find_condition(found[0], wanted.type)
        if live is None:
            there = [each.get("type") for each in (found[0].get("status") or {}).get("conditions") or ()]
            return [
                Finding(("type",), f"{_called(found[0])} has no condition {wanted.type}; it has {', '.join(there) or 'none'}")
            ]
        told_so = (f"it says: {live.get('reason', '')}: {live.get('message', '')}",)
        findings = [
            Finding((key,), f"{_called(found[0])}: {key} of {wanted.type} is {live.get(key)!r}; expected {value!r}", told_so)
            for key, value in (("status", wanted.status), ("reason", wanted.reason))
            if value and live.get(key) != value
        ]
        if wanted.message not in str(live.get("message", "")):
            said = f"{_called(found[0])}: the message of {wanted.type} has no {wanted.message!r}"
            findings.append(Finding(("message",), said, told_so))
        return findings

    async def _refused(self, refused: Refused) -> list[Finding]:
        found = []
        for number, each in enumerate(self._case.objects(refused.objects)):
            place: Place = (refused.verb, number) if isinstance(refused.objects, list) else (refused.verb,)
            what = f"{refused.called} may {refused.verb} {_called(each)}"
            try:
                await self._people.write(refused, refused.verb, each, refused.subresource, dry_run=True)
            except RefusedError as error:
                if refused.message not in told(error):
                    found.append(Finding(("message",), f"the refusal has no {refused.message!r}", (f"it says: {told(error)}",)))
            else:
                found.append(Finding(place, f"{what}: it is not refused"))
        return found


def _called(obj: Object) -> str:
    metadata = obj.get("metadata", {})
    name, namespace = metadata.get("name"), metadata.get("namespace")
    where = f" in {namespace}" if namespace and not name else ""
    return f"{obj['kind']} {f'{namespace}/' if namespace and name else ''}{name or ''}".rstrip() + where


def _differs(difference: Unlike) -> str:
    return f"{path_of(difference.place)} {difference.said}"


def wrong(error: ApiError) -> str:
    """Why something that somebody did was not done."""
    return f"refused: {told(error)}" if isinstance(error, RefusedError) else told(error)
