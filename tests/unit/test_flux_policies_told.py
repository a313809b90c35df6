"""What the TenancyProfile says of policies: for each state of each what is wrong, and the command that mends it (3.7)."""

from __future__ import annotations

from typing import Any

from lock_enforcement.policies.report import COMMAND, NOT_AS_WANTED, NOT_SERVED, policy_warning, report_policies
from lock_enforcement.policies.seen import PoliciesSeen
from tenantry.model.flux.names import DEFAULT, TENANCY_PROFILE
from tenantry.model.flux.policies import manifests
from tenantry.model.flux.policies.served import Served, newest
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import Object
from tenantry.model.plan import Apply
from tenantry.testing.objects import obj

NOW = "2026-01-02T03:04:05.678901Z"
INDEX = "tenantry-index-undeletable"


def profile(**spec: Any) -> Object:
    metadata = {"uid": "u", "generation": 3}
    return obj(TENANCY_PROFILE, DEFAULT, metadata=metadata, spec={"profile": "multi-tenant", **spec})


def there(found: Object, served: Served | None = None) -> dict[tuple[str, str], Object]:
    documents = manifests(Profile.of(found), served or newest())
    return {(each["kind"], each["metadata"]["name"]): each for each in documents}


def reported(seen: PoliciesSeen) -> tuple[Object, list[Object]]:
    """The status, and the Warnings."""
    writes = [each for each in report_policies(seen).writes() if isinstance(each, Apply)]
    (status,) = [each.wanted["status"] for each in writes if each.kind == TENANCY_PROFILE]
    return status, [each.wanted for each in writes if each.kind != TENANCY_PROFILE]


def said(status: Object) -> dict[str, tuple[str, str, str]]:
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in status["conditions"]}


def test_what_is_as_wanted_is_enforced() -> None:
    """All policies, each with its binding; the modes in force; and no Warning."""
    live = profile()
    status, events = reported(PoliciesSeen(live, newest(), there(live), now=NOW))
    assert not events
    assert {type_: found[:2] for type_, found in said(status).items()} == {
        "Enforced": ("True", "Enforced"),
        "Ready": ("True", "AsWanted"),
    }
    assert {each["observedGeneration"] for each in status["conditions"]} == {3}
    assert all(each["present"] and each["bound"] and each["current"] for each in status["policies"])
    assert len(status["policies"]) * 2 == len(there(live))
    assert (status["serviceAccountMode"], status["onDenied"]) == ("Default", "Deny")


def test_each_way_to_be_wrong_is_named_with_the_command() -> None:
    """Missing, not bound, edited and superfluous; told once as long as it is the same."""
    live = profile()
    policy, binding = ("ValidatingAdmissionPolicy", INDEX), ("ValidatingAdmissionPolicyBinding", INDEX)
    old = "tenantry-references-old.example.com"

    def state(**changes: Any) -> tuple[Object, list[Object], PoliciesSeen]:
        found = there(live)
        for key in changes.get("without", ()):
            del found[key]
        found |= changes.get("more", {})
        seen = PoliciesSeen(live, newest(), found, now=NOW)
        return *reported(seen), seen

    edited = {**there(live)[policy], "spec": {**there(live)[policy]["spec"], "failurePolicy": "Ignore"}}
    foreign = {("ValidatingAdmissionPolicy", old): {**edited, "metadata": {**edited["metadata"], "name": old}}}
    for changes, words, of_index in (
        ({"without": (policy, binding)}, "missing: ", (False, False, False)),
        ({"without": (binding,)}, "not bound: ", (True, False, False)),
        ({"more": {policy: edited}}, "edited, or of another release, profile or served version: ", (True, True, False)),
        ({"more": foreign}, "superfluous: ", (True, True, True)),
    ):
        status, events, seen = state(**changes)
        type_, reason, message = said(status)["Ready"]
        assert (type_, reason) == ("False", NOT_AS_WANTED)
        assert words in message
        assert (old if "superfluous" in words else INDEX) in message
        assert COMMAND in message
        assert said(status)["Enforced"][0] == ("True" if "superfluous" in words else "False")
        (listed,) = [each for each in status["policies"] if each["name"] == INDEX]
        assert (listed["present"], listed["bound"], listed["current"]) == of_index
        (event,) = events
        assert event["note"] == message
        again = PoliciesSeen(live, newest(), seen.there, frozenset({policy_warning(seen)}), NOW)
        assert not reported(again)[1]


def test_what_the_server_cannot_do_is_shown() -> None:
    """Without mutations what would be filled is required, and what would be quarantined is refused (f-139)."""
    served = Served(newest().resources)
    live = profile(onDenied="Quarantine")
    status, _ = reported(PoliciesSeen(live, served, there(live, served), now=NOW))
    assert (status["serviceAccountMode"], status["onDenied"]) == ("Require", "Deny")


def test_a_row_whose_kind_is_not_served_is_told() -> None:
    """By its name, and what to do."""
    row = {"group": "infra.contrib.fluxcd.io", "resource": "terraforms", "stop": {"field": "spec.suspend"}}
    live = profile(consumers=[{**row, "references": [{"path": "spec.sourceRef", "class": "read"}]}])
    status, events = reported(PoliciesSeen(live, newest(), there(live), now=NOW))
    assert said(status)["Ready"][:2] == ("False", NOT_SERVED)
    assert "terraforms.infra.contrib.fluxcd.io" in said(status)["Ready"][2]
    assert not events


def test_a_single_tenant_wants_no_policies() -> None:
    """What is there is superfluous; without a profile nothing is said."""
    live = profile(profile="single-tenant")
    status, events = reported(PoliciesSeen(live, newest(), {}, now=NOW))
    assert said(status)["Enforced"][:2] == ("False", "SingleTenant")
    assert said(status)["Ready"][0] == "True"
    assert status["policies"] == []
    assert not events
    status, _ = reported(PoliciesSeen(live, newest(), there(profile()), now=NOW))
    assert "superfluous" in said(status)["Ready"][2]
    assert not list(report_policies(PoliciesSeen(None)).writes())


def test_warnings_of_the_api_server_are_listed() -> None:
    """What it says about the types of expressions."""
    live = profile()
    found = there(live)
    key = ("ValidatingAdmissionPolicy", INDEX)
    checked = {"typeChecking": {"expressionWarnings": [{"fieldRef": "spec.validations[0]", "warning": "undefined field"}]}}
    found[key] = {**found[key], "status": checked}
    status, _ = reported(PoliciesSeen(live, newest(), found, now=NOW))
    (listed,) = [each for each in status["policies"] if each["name"] == INDEX]
    assert listed["warnings"] == ["spec.validations[0]: undefined field"]
