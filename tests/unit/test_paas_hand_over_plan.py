"""The hand-over of capabilities as pure functions: elements, the patch that makes them, and what is told (2.14, 2.15)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_provisioning.paas.elements import is_of, operations
from release_provisioning.paas.plan import doubtful, plan_paas, plan_set
from release_provisioning.paas.report import report_paas, report_set
from release_provisioning.paas.seen import MANAGER, HandOverSeen, SetSeen, given_by, told_sets
from tenantry.model.kinds import Object, key_of, object_of
from tenantry.model.paas import names
from tenantry.model.paas.config import PaasConfig, config_of
from tenantry.model.paas.declared import Paas, paas_of
from tenantry.model.plan import Apply, Edit, Plan, Refusal, RemoveFinalizers

OURS = (names.HAND_OVER_FINALIZER,)


def live_config(generic: dict[str, str] | None = None, **fields: Any) -> Object:
    """A capability argocd with these custom fields, which is handed over to argoas."""
    argocd = {"applicationset": "argoas", "custom_fields": fields}
    spec = {
        "capabilities": {"argocd": argocd},
        "clusterwide_argocd_namespace": "argo",
        "templating": {"genericCapabilityFields": generic or {}},
    }
    return object_of(names.PAAS_CONFIG, {"name": "c", "uid": "c"}, spec=spec)


def config(generic: dict[str, str] | None = None, **fields: Any) -> PaasConfig:
    return config_of(live_config(generic, **fields))


def paas(
    name: str = "my", *, deleted: bool = False, finalizers: Sequence[str] = OURS, enabled: bool = True, **argocd: Any
) -> Paas:
    metadata: dict[str, Any] = {"name": name, "uid": f"u-{name}", "generation": 1, "finalizers": list(finalizers)}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"requestor": "my-team", "capabilities": {"argocd": {"enabled": enabled, **argocd}}}
    return paas_of(object_of(names.PAAS, metadata, spec=spec))


def appset(*elements: Any, generators: list[Any] | None = None, mark: str = "", name: str = "argoas") -> Object:
    """An ApplicationSet whose first generator is a list with these elements."""
    made = generators if generators is not None else [{"list": {"elements": list(elements)}}]
    annotations = {names.ELEMENTS: mark} if mark else {}
    metadata = {"name": name, "namespace": "argo", "uid": "a", "resourceVersion": "7", "annotations": annotations}
    return object_of(names.APPLICATION_SET, metadata, spec={"generators": made, "template": {"a": 1.5}})


def seen(live: Object | None, *every: Paas, found: PaasConfig | None = None, **more: Any) -> SetSeen:
    return SetSeen("argo", (live or appset())["metadata"]["name"], live, found or config(), None, every, **more)


def patched(obj: Object, plan: Plan) -> Object:
    """The object after the patch of a plan."""
    made = copy.deepcopy(obj)
    for write in plan.writes():
        assert isinstance(write, Edit)
        for step in write.operations:
            *path, last = [part.replace("~1", "/") for part in str(step["path"]).split("/")[1:]]
            here: Any = made
            for part in path:
                here = here[int(part)] if isinstance(here, list) else here[part]
            if isinstance(here, list):
                at = len(here) if last == "-" else int(last)
                here.pop(at) if step["op"] == "remove" else here.insert(at, step["value"])
            elif step["op"] == "remove":
                del here[last]
            else:
                here[last] = step["value"]
    return made


def elements(obj: Object) -> list[Any]:
    found: list[Any] = next(each["list"]["elements"] for each in obj["spec"]["generators"] if "list" in each)
    return found


# -- elements --------------------------------------------------------------------------------------------------------


def element(of: Paas, found: PaasConfig) -> Any:
    (one,) = given_by(of, found)
    return one.element


def test_an_element_has_what_is_set_and_nothing_else() -> None:
    """The name of the Paas, git fields, custom fields, and last the fields for all capabilities."""
    assert element(paas(), config(unset={})) == {"paas": "my"}
    git = paas(gitUrl="u", gitRevision="r", gitPath="p", custom_fields={"key": "v"})
    assert element(git, config(key={})) == {"paas": "my", "git_url": "u", "git_revision": "r", "git_path": "p", "key": "v"}
    found = config({"requestor": "{{ .Paas.Spec.Requestor }}", "key": "wins", "paas": "another"}, key={})
    assert element(git, found) == {
        "paas": "my",
        "git_url": "u",
        "git_revision": "r",
        "git_path": "p",
        "key": "wins",
        "requestor": "my-team",
    }


@pytest.mark.parametrize(
    ("field", "declared", "value"),
    [
        ({"default": "d"}, {}, "d"),
        ({"default": "d"}, {"key": "v"}, "v"),
        ({"template": "{{ .Paas.Name }}-x"}, {}, "my-x"),
        ({"template": "{{ .Paas.Name }}-x"}, {"key": "v"}, "v"),
        ({"template": '{{ index .Paas.Labels "none" }}'}, {}, ""),
        ({"template": "{{ .Config.Spec.Debug }}"}, {}, None),
        ({"required": True}, {"key": "v"}, "v"),
    ],
)
def test_a_custom_field_has_the_value_of_the_paas_else_its_default(
    field: dict[str, Any], declared: dict[str, str], value: str | None
) -> None:
    """Or what its template gives; one that is no template is left out."""
    found = element(paas(custom_fields=declared), config(key=field))
    assert found == ({"paas": "my"} if value is None else {"paas": "my", "key": value})


def test_what_is_missing_or_unknown_is_known_by_name() -> None:
    (one,) = given_by(paas(custom_fields={"stray": "v"}), config(key={"required": True}))
    assert (one.element, one.missing, one.unknown) == (None, ("key",), ("stray",))


# -- the list --------------------------------------------------------------------------------------------------------


def test_elements_come_in_the_order_of_paas_and_others_stay() -> None:
    """Of the first list; other generators, fields and elements stay."""
    foreign = [{"paas": "nobody"}, {"x": 1.5}, "text", {"paas": 7}]
    git = {"git": {"repoURL": "r", "list": 1}}
    before = appset(
        generators=[git, {"list": {"elements": [*foreign, {"paas": "b"}], "template": {}}}, {"list": {"elements": []}}]
    )
    after = patched(before, plan_set(seen(before, paas("c"), paas("b"), paas("a"))))
    assert elements(after) == [*foreign, {"paas": "a"}, {"paas": "b"}, {"paas": "c"}]
    assert after["metadata"]["annotations"] == {names.ELEMENTS: "argocd"}
    after["spec"]["generators"][1]["list"]["elements"] = before["spec"]["generators"][1]["list"]["elements"]
    assert after["spec"] == before["spec"]


@pytest.mark.parametrize("generators", [[], [{"git": {}}], [{"list": {}}], [{"list": {"elements": None}}], [{"list": None}]])
def test_a_list_is_made_where_there_is_none(generators: list[Any]) -> None:
    """And none for nothing."""
    before = appset(generators=generators)
    assert [each for each in elements_or_none(patched(before, plan_set(seen(before, paas())))) if each] == [[{"paas": "my"}]]
    assert not plan_set(seen(before, paas(enabled=False))).changes(MANAGER)


def elements_or_none(obj: Object) -> list[Any]:
    return [(each.get("list") or {}).get("elements") for each in obj["spec"]["generators"]]


def test_the_last_element_leaves_an_empty_list_and_no_mark() -> None:
    before = appset({"paas": "my"}, mark="argocd")
    after = patched(before, plan_set(seen(before, paas(enabled=False))))
    assert elements(after) == []
    assert after["metadata"]["annotations"] == {}


def test_a_set_that_is_not_configured_any_more_loses_our_elements() -> None:
    """By its mark; one without mark is somebody else's."""
    before = appset({"paas": "my"}, {"paas": "nobody"}, mark="argocd", name="former")
    assert elements(patched(before, plan_set(seen(before, paas())))) == [{"paas": "nobody"}]
    before = appset({"paas": "my"}, name="theirs")
    assert not list(plan_set(seen(before, paas())).writes())


def test_a_required_field_keeps_an_element_that_is_there() -> None:
    """Exactly as it is; where there is none, none is made."""
    old = {"paas": "my", "old": "value"}
    found = config(key={"required": True})
    before = appset(old, mark="argocd")
    assert not plan_set(seen(before, paas(), paas("new"), found=found)).changes(MANAGER)


def test_an_element_waits_for_the_finalizer_and_changes_without() -> None:
    assert not plan_set(seen(appset(), paas(finalizers=()))).changes(MANAGER)
    before = appset({"paas": "my", "old": "value"}, mark="argocd")
    assert elements(patched(before, plan_set(seen(before, paas(finalizers=()))))) == [{"paas": "my"}]


def test_without_a_configuration_elements_stay_for_capabilities_that_are_enabled() -> None:
    """By the mark of their ApplicationSet (2.10)."""
    before = appset({"paas": "gone"}, {"paas": "my", "x": "y"}, {"paas": "off"}, mark="argocd")
    state = SetSeen("argo", "argoas", before, None, None, (paas(), paas("off", enabled=False), paas("gone", deleted=True)))
    assert elements(patched(before, plan_set(state))) == [{"paas": "my", "x": "y"}]


def test_who_goes_is_looked_at_twice() -> None:
    before = appset({"paas": "gone"}, {"paas": "my"}, mark="argocd")
    state = seen(before, paas(), paas("gone", deleted=True))
    assert doubtful(state, plan_set(state)) == {"gone"}


ELEMENT = st.sampled_from([*({"paas": name, "v": v} for name in "abc" for v in (0, 1)), {"paas": "z"}, {"x": 1}, "text"])
WANTED = st.lists(st.sampled_from("abc"), unique=True).map(lambda found: [{"paas": name, "v": 0} for name in sorted(found)])


@given(st.lists(ELEMENT, max_size=7), WANTED)
def test_operations_give_what_is_wanted_and_touch_nothing_else(current: list[Any], wanted: list[Any]) -> None:
    """Whatever is in the list: ours are those that are wanted, in order, and others stay in theirs and in no operation."""
    ours = is_of(frozenset("abc"))
    steps = operations(("e",), current, wanted, ours)
    after = list(current)
    for step in steps:
        at = int(step["path"].rpartition("/")[2])
        if step["op"] == "remove":
            assert ours(after.pop(at))
        else:
            after.insert(at, step["value"])
    assert [each for each in after if ours(each)] == wanted
    assert [each for each in after if not ours(each)] == [each for each in current if not ours(each)]
    assert operations(("e",), after, wanted, ours) == []


# -- Paas ------------------------------------------------------------------------------------------------------------


def reasons(plan: Plan) -> dict[str, str]:
    """Of the conditions that a plan writes."""
    return {
        each["type"]: each["reason"]
        for write in plan.writes()
        if isinstance(write, Apply)
        for each in (write.wanted.get("status") or {}).get("conditions") or ()
    }


PART = names.HAND_OVER_PART


def test_a_paas_is_let_go_when_no_element_is_left() -> None:
    gone = paas(deleted=True)
    assert not list(plan_paas(HandOverSeen(gone, left=True)).writes())
    assert [type(each) for each in plan_paas(HandOverSeen(gone)).writes()] == [RemoveFinalizers]
    assert [type(each) for each in plan_paas(HandOverSeen(paas(finalizers=()), config())).writes()] == [Apply]
    assert not list(plan_paas(HandOverSeen(paas(finalizers=()), config(), None)).writes())


def test_what_is_not_handed_over_is_told() -> None:
    """With its fix; an element that is on its way is not."""
    assert reasons(report_paas(HandOverSeen(paas(), config(), {"argoas": appset({"paas": "my"})}), ())) == {PART: "Reconciling"}
    assert reasons(report_paas(HandOverSeen(paas(), config(), {"argoas": appset()}), ())) == {}
    assert reasons(report_paas(HandOverSeen(paas(), config(), {"argoas": None}), ())) == {PART: "ApplicationSetMissing"}
    required, stray = config(key={"required": True}), paas(custom_fields={"stray": "v"})
    assert reasons(report_paas(HandOverSeen(paas(), required, {"argoas": appset()}), ())) == {PART: "RequiredField"}
    state = HandOverSeen(stray, config(), {"argoas": appset({"paas": "my"})})
    assert reasons(report_paas(state, ())) == {PART: "UnknownCustomField"}
    (write,) = report_paas(state, ()).writes()
    assert isinstance(write, Apply)
    assert "spec.capabilities[argocd].custom_fields[stray]" in write.wanted["status"]["conditions"][0]["message"]


def test_where_argo_cd_is_not_there_it_is_a_warning() -> None:
    """All else is there."""
    found = reasons(report_paas(HandOverSeen(paas(finalizers=()), config(), None), ()))
    assert found == {PART: "Reconciling", f"{PART}Warnings": "HandOverUnavailable"}


def test_a_refusal_is_told() -> None:
    key = next(iter(plan_set(seen(appset(), paas())).writes())).key
    state = HandOverSeen(paas(), config(), {"argoas": appset()}, refused={"argoas": Refusal(key, "admission", "no")})
    assert reasons(report_paas(state, ())) == {PART: "AdmissionDenied"}


def test_a_refused_finalizer_is_told_while_elements_wait_for_it() -> None:
    """No ApplicationSet was tried then; and a Paas that is being deleted tells what holds it."""
    refusal = Refusal(key_of(paas().live), "admission", "no")
    for finalizers in ((), OURS):
        state = HandOverSeen(paas(finalizers=finalizers), config(), {"argoas": appset()})
        assert reasons(report_paas(state, [refusal])) == {PART: "AdmissionDenied"}
    gone = HandOverSeen(paas(deleted=True), config(), {})
    assert reasons(report_paas(gone, [refusal])) == {PART: "AdmissionDenied"}
    assert reasons(report_paas(gone, ())) == {}


def test_an_element_that_no_paas_has_is_told_until_it_goes() -> None:
    """By a condition of the PaasConfig, which says of which ApplicationSet it is."""
    state = SetSeen("argo", "argoas", appset({"paas": "nobody"}, {"paas": "my"}), config(), live_config(), (paas(),))
    (write,) = report_set(state, ()).writes()
    assert isinstance(write, Apply)
    (told,) = write.wanted["status"]["conditions"]
    assert (told["status"], told["reason"]) == ("True", "UnknownElement")
    assert "ApplicationSet argo/argoas has elements of 'nobody'" in told["message"]
    own = {"manager": write.manager, "operation": "Apply", "subresource": "status", "fieldsV1": {"f:status": {}}}
    live = {**write.wanted, "metadata": {"name": "c", "uid": "c", "managedFields": [own]}}
    assert told_sets(live) == [("argo", "argoas")]
    (end,) = report_set(SetSeen("argo", "argoas", appset({"paas": "my"}), config(), live, (paas(),)), ()).writes()
    assert "status" not in end.wanted  # type: ignore[union-attr]
    assert not list(report_set(SetSeen("argo", "argoas", appset(), config(), live_config(), (paas(),)), ()).writes())
