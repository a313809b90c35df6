"""Namespaces of Paas: which are wanted, for whom, which groups apply in each, and what proves that one is ours."""

from __future__ import annotations

from typing import Any

import pytest

from tenantry.model.kinds import Object, object_of
from tenantry.model.paas import names, ours, places
from tenantry.model.paas.config import config_of
from tenantry.model.paas.declared import Paas, PaasNs, namespaces_of, paas_ns_of, paas_of

UID = "uid-of-my-paas"


def paas(name: str = "my-paas", **spec: Any) -> Paas:
    """A Paas as it is stored."""
    return paas_of(object_of(names.PAAS, {"name": name, "uid": UID, "creationTimestamp": "2026-01-01T00:00:00Z"}, spec=spec))


def asking(namespace: str, name: str, created: int = 0, **spec: Any) -> PaasNs:
    """A PaasNS; a later one is younger."""
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"{namespace}/{name}",
        "creationTimestamp": f"2026-01-01T00:00:{created:02}Z",
    }
    return paas_ns_of(object_of(names.PAAS_NS, metadata, spec=spec))


def having(name: str, asked_by: str = "", uid: str = UID, **metadata: Any) -> Object:
    """A namespace that the Paas has."""
    marks = {names.PAAS_UID: uid, **({names.ASKED_BY: asked_by} if asked_by else {})}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": marks, **metadata}}


def counted(of: Paas, *asked: PaasNs) -> tuple[set[str], set[str]]:
    """The suffixes of wanted namespaces, and the PaasNS that do not count."""
    wanted, refused = places.counting(places.spec_places(of, None), asked, of)
    return {name.removeprefix(f"{of.name}-") for name in wanted}, set(refused)


# -- which namespaces ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["b", "a"], {"a": None, "b": None}),
        (
            {"a": {"groups": ["us", "us"]}, "b": {}, "c": None, "d": {"groups": []}},
            {"a": ("us",), "b": None, "c": None, "d": None},
        ),
        (None, {}),
        ("text", {}),
        ([1, {"a": 1}, "b"], {"b": None}),
    ],
)
def test_namespaces_are_read_in_either_shape(written: Any, expected: dict[str, tuple[str, ...] | None]) -> None:
    """1.6: a list, or a map with what each entry is restricted to; what is neither means nothing."""
    assert namespaces_of(written) == expected


def test_a_namespace_that_is_a_capability_too_is_the_capability() -> None:
    """2.1: and one that is configured as external has no namespace."""
    config = config_of(object_of(names.PAAS_CONFIG, {"name": "c"}, spec={"capabilities": {"out": {"external": True}}}))
    of = paas(
        namespaces={"argocd": {"groups": ["us"]}, "a": {}}, capabilities={"argocd": {"enabled": True}, "out": {"enabled": True}}
    )
    found = places.spec_places(of, config)
    assert {name: place.origin for name, place in found.items()} == {"my-paas-a": "spec", "my-paas-argocd": "capability"}
    assert found["my-paas-argocd"].groups is None
    assert "my-paas-out" in places.spec_places(of, None)


def test_paas_ns_count_one_after_the_other_the_oldest_first() -> None:
    """p-72: the second and the one named like its own namespace's change nothing."""
    of = paas("tw", namespaces=["one", "two"])
    first = asking("tw-one", "secret", 1, groups=["us"])
    later = asking("tw-two", "secret", 2)
    named = asking("tw-one", "two", 3, groups=["us"])
    assert counted(of, named, later, first) == ({"one", "two", "secret"}, {"tw-two/secret", "tw-one/two"})
    wanted, _ = places.counting(places.spec_places(of, None), [named, later, first], of)
    assert wanted["tw-secret"] == places.PaasPlace("tw-secret", "paasns", ("us",), asked_by="tw-one/secret")
    assert wanted["tw-two"].groups is None


def test_paas_ns_named_like_what_is_there_do_not_count() -> None:
    """p-105: like an entry of the spec, a capability, its own namespace."""
    of = paas(namespaces=["cicd"], capabilities={"argocd": {"enabled": True}})
    inside = [asking("my-paas-cicd", "argocd", 1), asking("my-paas-argocd", "cicd", 2), asking("my-paas-cicd", "cicd", 3)]
    assert counted(of, *inside) == ({"cicd", "argocd"}, {each.key for each in inside})


def test_paas_ns_are_stacked_and_do_not_hold_each_other_up() -> None:
    """p-107: two in each other's namespaces count only while something leads there."""
    of = paas(namespaces=["a"])
    p, q, lead = asking("my-paas-q", "p", 1), asking("my-paas-p", "q", 2), asking("my-paas-a", "p", 3)
    assert counted(of, p, q, lead) == ({"a", "p", "q"}, {"my-paas-q/p"})
    assert counted(of, p, q) == ({"a"}, {"my-paas-q/p", "my-paas-p/q"})


def test_paas_ns_for_another_paas_or_being_deleted_do_not_count() -> None:
    """2.2: spec.paas, when set, is the Paas that has the namespace."""
    of = paas(namespaces=["a"])
    other, mine = asking("my-paas-a", "x", paas="other"), asking("my-paas-a", "y", paas="my-paas")
    going = asking("my-paas-a", "z")
    going.live["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    assert counted(of, other, mine, going) == ({"a", "y"}, {"my-paas-a/x"})


def test_a_paas_ns_without_groups_has_those_of_the_namespace_it_lives_in() -> None:
    """p-73: those of a restricted one, through as many as are stacked."""
    of = paas(namespaces={"one": {"groups": ["us"]}})
    wanted, _ = places.counting(
        places.spec_places(of, None), [asking("my-paas-one", "plain"), asking("my-paas-plain", "deep")], of
    )
    assert wanted["my-paas-deep"].groups == ("us",)


def applied(of: Paas, name: str, held: dict[str, Object], *asked: PaasNs) -> places.PaasPlace | None:
    """What a namespace of the Paas is wanted for."""
    return places.applying(of, places.spec_places(of, None), held[name], {each.key: each for each in asked}, held)


def test_a_namespace_is_wanted_for_what_it_remembers() -> None:
    """p-106: when the PaasNS that asked for it is gone another one of the name does not inherit it."""
    of = paas("tw", namespaces=["one", "two"])
    held = {"tw-one": having("tw-one"), "tw-two": having("tw-two"), "tw-secret": having("tw-secret", "tw-one/secret")}
    older, younger = asking("tw-one", "secret", 1, groups=["us"]), asking("tw-two", "secret", 2)
    found = applied(of, "tw-secret", held, older, younger)
    assert found == places.PaasPlace("tw-secret", "paasns", ("us",), asked_by="tw-one/secret")
    assert applied(of, "tw-secret", held, younger) is None
    assert applied(of, "tw-two", held) == places.PaasPlace("tw-two", "spec")


def test_namespaces_that_only_lead_to_each_other_are_not_wanted() -> None:
    """p-107: neither of them, once what led there first is gone."""
    of = paas(namespaces=["a"])
    held = {
        "my-paas-a": having("my-paas-a"),
        "my-paas-p": having("my-paas-p", "my-paas-q/p"),
        "my-paas-q": having("my-paas-q", "my-paas-p/q"),
    }
    assert applied(of, "my-paas-p", held, asking("my-paas-q", "p"), asking("my-paas-p", "q")) is None


def test_a_namespace_that_the_spec_asks_for_becomes_the_spec_s() -> None:
    """p-108: and stands with what the spec says, whatever it remembers."""
    of = paas(namespaces=["a", "x"])
    held = {"my-paas-a": having("my-paas-a"), "my-paas-x": having("my-paas-x", "my-paas-a/x")}
    found = applied(of, "my-paas-x", held, asking("my-paas-a", "x", groups=["us"]))
    assert found == places.PaasPlace("my-paas-x", "spec")


def test_what_a_stacked_paas_ns_lives_in_must_be_held() -> None:
    """A namespace that is gone leads nowhere."""
    of = paas(namespaces=["a"])
    held = {"my-paas-deep": having("my-paas-deep", "my-paas-plain/deep")}
    assert applied(of, "my-paas-deep", held, asking("my-paas-plain", "deep"), asking("my-paas-a", "plain")) is None


# -- what is ours ----------------------------------------------------------------------------------------------------


def test_proof_is_the_annotation_or_upstream_s_owner_reference_with_the_uid() -> None:
    """p-189: another uid, the name alone and the label alone prove nothing."""
    of = paas()

    def referring(**reference: str) -> Object:
        full = {"apiVersion": f"{names.GROUP_OF_KINDS}/v1alpha1", "kind": "Paas", "name": "my-paas", "uid": UID, **reference}
        return {"metadata": {"name": "n", "ownerReferences": [full]}}

    proven = [having("n"), referring()]
    unproven = [having("n", uid="other"), referring(uid="other"), referring(name="other"), referring(apiVersion="v1")]
    unproven.append({"metadata": {"name": "n", "labels": {names.MANAGED_BY_PAAS: "my-paas"}}})
    assert all(ours.is_ours(each, of.name, of.uid) for each in proven)
    assert not any(ours.is_ours(each, of.name, of.uid) for each in unproven)
    assert not ours.is_ours(having("n", uid=""), of.name, "")


def test_a_namespace_on_its_way_out_is_not_held() -> None:
    """2.1: it counts for nothing."""
    assert places.held_by(paas(), having("n"))
    assert not places.held_by(paas(), having("n", deletionTimestamp="2026-01-02T00:00:00Z"))
    assert not places.held_by(paas(), None)
