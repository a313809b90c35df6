"""What the page asks: `tenantry explain KIND/NAME` with the decisions about an object, and `explain can` and `why-not`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenantry.api import Api
from tenantry.api.errors import ApiError
from tenantry.api.served import served_resources
from tenantry.cli.explain.asking import Right, Where, right_judged, right_told
from tenantry.cli.explain.can import can_told
from tenantry.cli.explain.configured import configured
from tenantry.cli.explain.missing import missing_told
from tenantry.cli.explain.objects import named_object_told
from tenantry.cli.explain.printed import can_answer, can_lines, lacking_lines, object_answer, object_lines
from tenantry.cli.explain.reading import Reading
from tenantry.cli.explain.resources import find
from tenantry.cli.explain.subjects import asked_about
from tenantry.cli.one_line import WrongUse
from tenantry.kit.console.decided import Decided
from tenantry.kit.console.live import Live
from tenantry.model.kinds import Kind
from tenantry.model.map.nodes import OWNERS
from tenantry.serving.config import ConfigError

_DECLARED = {"paas": "Paas", "tenant": "Tenant"}
"""Owners in the map that are objects themselves, with their kinds."""
_LONGEST = 512
"""Of a name: those of Kubernetes are shorter."""
_CONFIG = "start the console with the file in TENANTRY_CONFIG"
MISSING = "name an object: kind, name and, if it has one, namespace"


async def about(live: Live, decided: Decided, query: Mapping[str, str]) -> dict[str, Any]:
    """The answer for ``kind``, ``name`` and ``namespace``: explanations, decisions, or what went wrong.

    Two groups of the API can have the same name of a kind: where both have an object of this name both are explained.

    Raises:
        WrongUse: nothing is named, or the cluster has no such object; the message says which.
    """
    kind, name, namespace = (query.get(each, "") for each in ("kind", "name", "namespace"))
    if not kind or not name or max(map(len, (kind, name, namespace))) > _LONGEST:
        raise WrongUse(MISSING)
    owner = f"{kind}/{name}" if kind in OWNERS else ""
    what = owner or "/".join(each for each in (kind, namespace, name) if each)
    decisions = await decided.about(what)
    if kind == "project":
        return {"answers": [], "decisions": decisions}
    try:
        return {"answers": await _answers(live, _DECLARED.get(kind, kind), name, namespace), "decisions": decisions}
    except (ApiError, ConfigError) as error:
        raise WrongUse(str(error)) from error


async def _answers(live: Live, kind: str, name: str, namespace: str) -> list[dict[str, Any]]:
    kinds = live.followed.kinds_with(kind, namespace, name) or [await _served(live.api, kind)]
    reading = Reading(live.api, await configured(live.api, None, _CONFIG))
    found = []
    for each in kinds:
        told = await named_object_told(each, name, namespace if each.namespaced else "", reading)
        answer, rest = object_answer(told)
        lines = [*object_lines(told)]
        found.append({"answer": answer, "rest": rest, "ours": told["ours"], "lines": lines, "explained": told})
    return found


async def _served(api: Api, kind: str) -> Kind:
    found = find(kind, await served_resources(api))
    if found is None:
        raise WrongUse(f"the server serves no {kind}")
    return found.kind


async def who_can(api: Api, query: Mapping[str, str]) -> dict[str, Any]:
    """The answer of `tenantry explain can`, and where it is no, that of `why-not`, too.

    ``subject``, ``verb`` and ``resource`` are as these commands take them; without ``namespace`` the whole cluster is meant.

    Raises:
        WrongUse: something in the question means nothing here; the message says what.
        ApiError: what decides cannot be read.
        ConfigError: the configuration cannot be used.
    """
    subject, verb, resource, namespace = (query.get(each, "").strip() for each in ("subject", "verb", "resource", "namespace"))
    if not (subject and verb and resource):
        raise WrongUse("name who, a verb and a resource, such as jane, get and pods; without a namespace all are meant")
    if max(map(len, (subject, verb, resource, namespace))) > _LONGEST:
        raise WrongUse(f"a name is longer than {_LONGEST} characters")
    reading = Reading(api, await configured(api, None, _CONFIG))
    right = Right(asked_about(subject), verb, resource, Where(namespace))
    judged = await right_judged(right, reading)
    told = await right_told(right, judged, reading, can_told)
    answer, rest = can_answer(told)
    found = {"answer": answer, "rest": rest, "good": bool(told["allowed"]), "lines": [*can_lines(told)], "missing": []}
    if not told["allowed"]:
        found["missing"] = [*lacking_lines(await right_told(right, judged, reading, missing_told))]
    return found
