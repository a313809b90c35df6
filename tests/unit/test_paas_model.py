"""The model of Paas: names out of queries, what a configuration means, placeholders, conditions."""

from __future__ import annotations

from typing import Any

import pytest

from tenantry.model.conditions import condition
from tenantry.model.kinds import Object, object_of
from tenantry.model.paas import groups, names, placeholders, status
from tenantry.model.paas.config import active_of, config_of
from tenantry.model.paas.declared import Group, Paas, paas_of

UID = "uid-of-my-paas"


def paas(name: str = "my-paas", **spec: Any) -> Paas:
    """A Paas as it is stored."""
    return stored(spec, name=name)


def stored(spec: Object, **metadata: Any) -> Paas:
    """A Paas with metadata of its own."""
    found = {"name": "my-paas", "uid": UID, "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z", **metadata}
    return paas_of(object_of(names.PAAS, found, spec=spec))


# -- names of groups -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("CN=others,OU=x", "others"),
        ("CN=others,..", "others"),
        ("others", "others"),
        ("cn = others ,OU=x", "others"),
        ("CN=a=b,OU=x", "a=b"),
        (r"CN=Doe\, John,OU=x", "Doe, John"),
        (r"CN=a\2Cb", "a,b"),
        (r"CN=a\+b", "a+b"),
        (r"CN=a\ ,OU=x", "a "),
        (r"CN=M\C3\BCller", "Müller"),
        (r"CN=\#1", "#1"),
    ],
)
def test_the_name_in_a_query_is_the_value_of_its_first_part(query: str, name: str) -> None:
    """p-97: up to the first comma that is not escaped, after the first equals sign, escapes undone, blanks cut off."""
    assert groups.group_name("my-paas", "key", Group(query=query)) == groups.Named(name, generated=False)


@pytest.mark.parametrize(
    "query",
    [
        "CN=",
        ",OU=x",
        "  ",
        "CN=   ,OU=x",
        "CN=a+OU=b",
        "CN=a;b",
        'CN="a"',
        "CN=<a>",
        "CN=#0401",
        "CN=a\\",
        r"CN=a\x",
        r"CN=\C3",
        "CN=system:authenticated",
        r"CN=\73ystem:masters",
        f"CN={'a' * 254}",
    ],
)
def test_queries_without_a_usable_name_give_none(query: str) -> None:
    """p-97: the rows that are refused; the problem quotes the query."""
    found = groups.group_name("my-paas", "key", Group(query=query))
    assert found.problem.startswith(f"query {query!r}: ")


@pytest.mark.parametrize("character", ["\n", "\r", "\t", "\0", "\u2028", "\u202e"])
def test_keys_and_queries_with_what_does_not_show_are_problems(character: str) -> None:
    """p-98: the problem names the character by its number, not by itself."""
    escaped = "".join(f"\\{byte:02X}" for byte in character.encode())
    for group in (Group(), Group(query=f"CN=a{character}b"), Group(query=f"CN=a{escaped}b")):
        found = groups.group_name("my-paas", f"a{character}b", group)
        assert f"U+{ord(character):04X}" in found.problem
        assert character not in found.problem


def test_a_group_without_query_is_called_after_the_paas_and_its_key() -> None:
    """Also one without users; a key is at most 190 characters long, and never empty."""
    assert groups.group_name("my-paas", "us", Group(users=("me",))) == groups.Named("my-paas-us", generated=True)
    assert groups.group_name("my-paas", "My Group", Group()).name == "my-paas-My Group"
    assert "191 characters" in groups.group_name("my-paas", "k" * 191, Group()).problem
    assert "empty" in groups.group_name("my-paas", "", Group()).problem


# -- roles -----------------------------------------------------------------------------------------------------------


def configured(**spec: Any) -> Object:
    """A PaasConfig as it is stored."""
    return object_of(names.PAAS_CONFIG, {"name": "c", "uid": "u"}, spec=spec)


@pytest.mark.parametrize(
    ("policy", "roles"),
    [(None, {"view", "admin"}), ("UseDefault", {"view", "admin"}), ("Ignore", {"admin"}), ("Reject", {"admin"})],
)
def test_roles_that_are_not_mapped_count_as_the_policy_says(policy: str | None, roles: set[str]) -> None:
    """2.4: each role for itself."""
    spec: Object = {"rolemappings": {"default": ["view"], "admin": ["admin"]}}
    config = config_of(configured(**spec, **({"unknownRolePolicy": policy} if policy else {})))
    group = Group(roles=("viewer", "admin"))
    assert groups.cluster_roles(group, config) == roles
    assert groups.unknown_roles(group, config) == ("viewer",)
    assert groups.cluster_roles(Group(), config) == {"view"}


def test_two_configurations_that_mean_the_same_are_equal() -> None:
    """p-180: order in a mapping, annotations and unused fields mean nothing."""
    one = configured(rolemappings={"a": ["x", "y"], "b": ["z"]})
    other = configured(rolemappings={"b": ["z"], "a": ["y", "x", "x"]}, debug=True)
    other["metadata"]["annotations"] = {"comment": "new"}
    assert config_of(one) == config_of(other)
    assert config_of(one) != config_of(configured(rolemappings={"a": ["x"], "b": ["z"]}))


def test_the_oldest_configuration_counts() -> None:
    """2.10: by creationTimestamp, then by name; one that is being deleted does not."""

    def made(name: str, created: str, **more: str) -> Object:
        return object_of(names.PAAS_CONFIG, {"name": name, "creationTimestamp": created, **more})

    first, second, third = made("b", "1"), made("c", "1"), made("a", "2")
    assert active_of([third, second, first]) == first
    assert active_of([third, second, made("b", "1", deletionTimestamp="3")]) == second
    assert active_of([]) is None


def test_extra_permissions_join_the_default_ones_only_where_asked_for() -> None:
    """2.7: an external capability has none."""
    known = {"default_permissions": {"sa": ["r1"]}, "extra_permissions": {"sa": ["r2", "r1"], "other": ["r3"]}}
    config = config_of(configured(capabilities={"argocd": known, "out": {**known, "external": True}}))
    assert config.permissions("argocd", extra=False) == {"sa": ("r1",)}
    assert config.permissions("argocd", extra=True) == {"other": ("r3",), "sa": ("r1", "r2")}
    assert config.permissions("out", extra=True) == config.permissions("nope", extra=True) == {}


# -- placeholders ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("fixed", "fixed"),
        ("{{ .Paas.Name }}", "team-a-b"),
        ("{{.Paas.Name}}-x", "team-a-b-x"),
        ("{{ .Paas.Spec.Requestor }}", "a: b\n{c}"),
        ("{{ .Paas.Spec.ManagedByPaas }}", ""),
        ("{{ .Paas.Spec.ManagedByPaas | default .Paas.Name }}", "team-a-b"),
        ('{{ index .Paas.Labels "team" }}', "blue"),
        ('{{ index .Paas.Labels "nope" }}', ""),
        ('{{index .Paas.Annotations "example.org/x"}}', "{{ .Paas.Name }}"),
        ('{{ (splitn "-" 2 .Paas.Name)._0 }}', "team"),
        ('{{ (splitn "-" 2 .Paas.Name)._1 }}', "a-b"),
        ("{ }}", "{ }}"),
    ],
)
def test_each_placeholder_gives_its_value(template: str, value: str) -> None:
    """p-132: what is not there is empty, and a value is never looked at for placeholders again."""
    of = stored(
        {"requestor": "a: b\n{c}"},
        name="team-a-b",
        labels={"team": "blue"},
        annotations={"example.org/x": "{{ .Paas.Name }}"},
    )
    assert placeholders.template_problem(template) == ""
    assert placeholders.rendered(template, of) == value


@pytest.mark.parametrize(
    "template",
    [
        "{{ .Config.Spec.Debug }}",
        "{{ range $k, $v := .Paas.Labels }}",
        "{{ .Paas.Spec.Groups }}",
        "{{ .Paas.Name",
        "{{",
        "x {{ .Paas.Name }} {{ .Paas.Nam }}",
        '{{ index .Paas.Labels "a}}" }}',
    ],
)
def test_what_is_no_placeholder_is_a_problem(template: str) -> None:
    """p-133: the problem names what there is, and nothing is rendered."""
    assert ".Paas.Spec.Requestor" in placeholders.template_problem(template)
    assert placeholders.rendered(template, paas()) is None


# -- conditions ------------------------------------------------------------------------------------------------------


def test_parts_are_due_by_what_is_configured_or_still_held() -> None:
    """1.4: Namespaces and Rights always; the others by the enabled capabilities, and while a finalizer is there."""
    always = (names.NAMESPACES_PART, names.RIGHTS_PART)
    accounts = {"default_permissions": {"a": ["r"]}}
    more = {"extra_permissions": {"a": ["r"]}}
    known = {"sa": accounts, "app": {"applicationset": "x"}, "off": {}, "out": {**accounts, "external": True}, "more": more}
    config, on = config_of(configured(capabilities=known)), {"enabled": True}
    assert status.due_parts(paas(capabilities={"off": on, "nope": on, "app": {"enabled": False}}), config) == always
    assert status.due_parts(paas(capabilities={"sa": on}), config) == (*always, names.ACCOUNTS_PART)
    assert status.due_parts(paas(capabilities={"app": on}), config) == (*always, names.HAND_OVER_PART)
    assert status.due_parts(paas(capabilities={"app": on}), None) == always
    assert status.due_parts(paas(capabilities={"out": on}), config) == always
    assert status.due_parts(paas(capabilities={"more": on}), config) == always
    asked = paas(capabilities={"more": {**on, "extra_permissions": True}})
    assert status.due_parts(asked, config) == (*always, names.ACCOUNTS_PART)
    leaving = stored({}, finalizers=[names.ACCOUNTS_FINALIZER, names.HAND_OVER_FINALIZER])
    assert status.due_parts(leaving, None) == names.PARTS


def part(type_: str, good: bool = True, generation: int = 3, reason: str = "Reconciling", message: str = "done") -> Object:
    """The condition of a part."""
    return condition(type_, "True" if good else "False", reason, message, generation)


def told(found: list[Object] | None) -> dict[str, tuple[str, str]]:
    """Status and reason, by type."""
    return {each["type"]: (each["status"], each["reason"]) for each in found or ()}


DUE = (names.NAMESPACES_PART, names.RIGHTS_PART)


def test_ready_needs_every_due_part_of_this_generation() -> None:
    """1.4: with what is only a warning beside it."""
    warned = condition(f"{names.RIGHTS_PART}Warnings", "True", "QueryAndUsers", "group others", 3)
    found = status.overall(paas(), [part(names.NAMESPACES_PART), part(names.RIGHTS_PART), warned], DUE)
    assert told(found) == {
        "Ready": ("True", "Reconciling"),
        "HasErrors": ("False", "Reconciling"),
        "Warnings": ("True", "QueryAndUsers"),
    }
    assert all(each["observedGeneration"] == 3 for each in found or ())


def test_the_first_part_with_an_error_gives_the_reason_and_all_are_named() -> None:
    """1.4: in the order of the parts."""
    bad = [
        part(names.RIGHTS_PART, False, reason="GroupConflict", message="group x"),
        part(names.NAMESPACES_PART, False, reason="NamespaceConflict", message="namespace y"),
    ]
    found = status.overall(paas(), bad, DUE)
    assert told(found)["Ready"] == ("False", "NamespaceConflict")
    assert told(found)["HasErrors"] == ("True", "NamespaceConflict")
    assert (found or [])[0]["message"] == "namespace y; group x"


def test_a_paas_that_never_had_a_value_waits_for_its_parts() -> None:
    """1.4: Unknown only until each due part has spoken once; an error is an error at once."""
    found = status.overall(paas(), [part(names.NAMESPACES_PART)], DUE)
    assert told(found)["Ready"] == ("Unknown", "Reconciling")
    assert "Rights" in (found or [])[0]["message"]
    failed = status.overall(paas(), [part(names.NAMESPACES_PART, False, reason="NoPaasConfig")], DUE)
    assert told(failed)["Ready"] == ("False", "NoPaasConfig")


def test_the_old_value_stays_while_a_new_generation_is_worked_on() -> None:
    """1.4: no flap; what a part says of an older generation is not taken for this one."""
    of = paas_of({**paas().live, "status": {"conditions": [part("Ready", generation=2)]}})
    assert status.overall(of, [part(names.NAMESPACES_PART), part(names.RIGHTS_PART, generation=2)], DUE) is None
    found = status.overall(of, [part(names.NAMESPACES_PART), part(names.RIGHTS_PART)], DUE)
    assert told(found)["Ready"] == ("True", "Reconciling")


def test_an_error_that_ends_before_each_part_has_spoken_is_told_no_longer() -> None:
    """1.4: as if there had been none; a Paas that was ready stays so while a part that is newly due has not spoken."""

    def standing(*, good: bool) -> Paas:
        return paas_of({**paas().live, "status": {"conditions": [part("Ready", good, generation=3)]}})

    assert told(status.overall(standing(good=False), [part(names.NAMESPACES_PART)], DUE))["Ready"] == ("Unknown", "Reconciling")
    assert status.overall(standing(good=True), [part(names.NAMESPACES_PART)], DUE) is None
    older = [part(names.NAMESPACES_PART), part(names.RIGHTS_PART, generation=2)]
    assert status.overall(standing(good=False), older, DUE) is None


def test_a_part_names_every_problem_sorted_and_begins_with_the_first_reason() -> None:
    """1.4: in the order of the specification, whatever order they are found in."""
    problems = [
        status.PaasProblem("GroupConflict", "b"),
        status.PaasProblem("NamespaceConflict", "c"),
        status.PaasProblem("GroupConflict", "a"),
    ]
    (found,) = status.part_conditions(names.RIGHTS_PART, problems, [], 3, done="all is there")
    assert (found["status"], found["reason"], found["message"]) == ("False", "NamespaceConflict", "a; b; c")


def test_events_say_when_a_problem_begins_changes_and_ends() -> None:
    """1.4: nothing while it stays as it is."""
    bad = part(names.RIGHTS_PART, False, reason="GroupConflict", message="group x")
    about = (names.RIGHTS_PART,)
    before, after = paas().live, {**paas().live, "status": {"conditions": [bad]}}
    begun = status.changed_problem(before, [bad], about=about)
    assert begun is not None
    assert (begun.reason, begun.note, begun.type) == ("GroupConflict", "group x", "Warning")
    assert status.changed_problem(after, [bad], about=about) is None
    ended = status.changed_problem(after, [part(names.RIGHTS_PART)], about=about)
    assert ended is not None
    assert ended.reason == "Healed"
    assert status.changed_problem(before, [part(names.RIGHTS_PART)], about=about) is None
