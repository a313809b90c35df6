"""Which namespaces and quotas a Paas gets, who keeps a name, and what is ever deleted."""

from __future__ import annotations

from typing import Any

import pytest
from paas_cluster import PROJECT_LABEL, Cluster, asks, config, namespace, paas, quota

from namespace_registration.paas.report import report_paas
from namespace_registration.paas.seen import prefixes
from namespace_registration.paas.wanted import waits
from tenantry.model.kinds import NAMESPACE, Key, annotations_of
from tenantry.model.paas.names import ASKED_BY, PAAS_FINALIZER, RIGHTS_FINALIZER
from tenantry.model.plan import Apply, Write


def _reference(uid: str, name: str = "p") -> list[dict[str, Any]]:
    return [{"apiVersion": "cpet.belastingdienst.nl/v1alpha1", "kind": "Paas", "name": name, "uid": uid}]


def _apply(write: Write) -> Apply:
    assert isinstance(write, Apply)
    return write


async def _told(cluster: Cluster, name: str, type_: str = "tenantry.dev/Namespaces") -> str:
    seen = await cluster.seen(name)
    status = _apply(next(report_paas(seen, (), PROJECT_LABEL).writes()))
    found = [each for each in status.wanted["status"]["conditions"] if each["type"] == type_]
    return f"{found[0]['reason']}: {found[0]['message']}" if found else ""


def test_whose_a_name_could_be() -> None:
    """A Paas can want only what its own name begins, at a dash."""
    assert prefixes("a-b-c") == ["a", "a-b"]
    assert prefixes("a--b") == ["a"]
    assert prefixes("a") == []


async def test_a_new_paas() -> None:
    """Finalizer, quotas, namespaces."""
    cluster = Cluster(paas("p", "one", finalizers=[], capabilities={"argocd": {"enabled": True}}), config())
    assert await cluster.changes("p") == [
        "update Paas p",
        "create ClusterResourceQuota p",
        "create Namespace p-argocd",
        "create Namespace p-one",
    ]


@pytest.mark.parametrize(
    ("live", "goes"),
    [
        (namespace("p-old", "p"), True),
        (namespace("p-old", "p", deleted=True), False),
        (namespace("p-old", labels={"cpet.belastingdienst.nl/managed-by-paas": "p"}), False),
        (namespace("p-old", labels={"cpet.belastingdienst.nl/managed-by-paas": "p"}, ownerReferences=_reference("uid-p")), False),
        (namespace("p-old", "q", labels={"cpet.belastingdienst.nl/managed-by-paas": "p"}), False),
    ],
    ids=["ours", "terminating", "label", "owner reference", "another's"],
)
async def test_what_is_deleted(live: dict[str, Any], goes: bool) -> None:
    """Only a namespace with our annotation for this Paas, that is not wanted and not going already."""
    changes = await Cluster(paas("p"), config(), live, paas("q"), quota("p", "p")).changes("p")
    assert ("delete Namespace p-old" in changes) is goes


async def test_a_reference_with_another_uid_proves_nothing() -> None:
    """A wanted namespace that has one is left alone and told; one with the right uid is marked, and only then freed of it."""
    other = Cluster(paas("p", "x"), config(), namespace("p-x", ownerReferences=_reference("uid-other")), quota("p", "p"))
    assert not [each for each in await other.changes("p") if "Namespace" in each]
    assert (await _told(other, "p")).startswith("NamespaceConflict: namespace p-x exists")

    mine = Cluster(paas("p", "x"), config(), namespace("p-x", ownerReferences=_reference("uid-p")))
    assert "update Namespace p-x" in await mine.changes("p")
    (apply,) = [each for each in (await mine.plan("p")).writes() if each.key.name == "p-x"]
    assert apply.key.kind == "Namespace"
    marked = Cluster(paas("p", "x"), config(), namespace("p-x", "p", ownerReferences=_reference("uid-p")))
    writes = [type(each).__name__ for each in (await marked.plan("p")).writes() if each.key.name == "p-x"]
    assert writes == ["Apply", "Edit"]


@pytest.mark.parametrize("older", ["a", "a-b"])
async def test_the_oldest_gets_what_nobody_has(older: str) -> None:
    """Both come to the same answer, whoever is asked; what the other one has, it keeps."""
    ages = {each: "2026-01-01" if each == older else "2026-01-02" for each in ("a", "a-b")}
    wants = (paas("a", "b-c", created=ages["a"]), paas("a-b", "c", created=ages["a-b"]))
    cluster = Cluster(*wants, config())
    younger = "a-b" if older == "a" else "a"
    assert "create Namespace a-b-c" in await cluster.changes(older)
    assert "create Namespace a-b-c" not in await cluster.changes(younger)
    assert f"Paas {older}'s, which is older" in await _told(cluster, younger)

    had = Cluster(*wants, config(), namespace("a-b-c", younger))
    assert not [each for each in await had.changes(older) if "a-b-c" in each]
    assert f"namespace a-b-c is Paas {younger}'s" in await _told(had, older)


async def test_what_an_older_one_asks_for_by_a_paas_ns_counts() -> None:
    """Also where the name comes from a PaasNS of the other Paas."""
    cluster = Cluster(
        paas("a", "x", created="2026-01-01"), paas("a-b", "c"), config(), namespace("a-x", "a"), asks("a-x", "b-c", paas="a")
    )
    assert "create Namespace a-b-c" in await cluster.changes("a")
    assert "create Namespace a-b-c" not in await cluster.changes("a-b")


async def test_one_that_is_being_deleted_wants_nothing() -> None:
    """Its name is free for the next."""
    cluster = Cluster(paas("a", "b-c", created="2026-01-01", deleted=True), paas("a-b", "c"), config())
    assert "create Namespace a-b-c" in await cluster.changes("a-b")


async def test_an_adopted_namespace_is_not_taken_from_another_paas() -> None:
    """An administrator's annotation hands over what no existing Paas has."""
    handed = {"tenantry.dev/adopt": "a"}
    cluster = Cluster(paas("a", "b-c"), paas("a-b", "c"), config(), namespace("a-b-c", "a-b", annotations=handed))
    assert not [each for each in await cluster.changes("a") if "a-b-c" in each]
    free = Cluster(paas("a", "b-c"), config(), namespace("a-b-c", "gone", annotations=handed), quota("a", "a"))
    assert "update Namespace a-b-c" in await free.changes("a")


# -- PaasNS ------------------------------------------------------------------------------------------------


async def test_a_namespace_remembers_who_asked() -> None:
    """Another PaasNS of the name gets a new namespace, after this one is gone."""
    old = namespace("p-x", "p", asked_by="p-one/x")
    next_one = (paas("p", "one", "two"), config(), namespace("p-one", "p"), namespace("p-two", "p"), asks("p-two", "x"))
    assert [each for each in await Cluster(*next_one, old).changes("p") if "p-x" in each] == ["delete Namespace p-x"]
    going = namespace("p-x", "p", asked_by="p-one/x", deleted=True)
    assert not [each for each in await Cluster(*next_one, going).changes("p") if "p-x" in each]
    plan = await Cluster(*next_one).plan("p")
    (made,) = [each for each in plan.writes() if each.key.name == "p-x"]
    assert annotations_of(_apply(made).wanted)[ASKED_BY] == "p-two/x"


async def test_an_older_paas_ns_takes_nothing_away() -> None:
    """The one that the namespace remembers counts, though the other is older."""
    cluster = Cluster(
        paas("p", "one", "two"),
        config(),
        namespace("p-one", "p"),
        namespace("p-two", "p"),
        namespace("p-x", "p", asked_by="p-two/x"),
        asks("p-one", "x", created="2026-01-01"),
        asks("p-two", "x", created="2026-01-05"),
    )
    assert not [each for each in await cluster.changes("p") if each.startswith("delete")]


async def test_a_label_that_somebody_takes_off_deletes_nothing() -> None:
    """What a namespace without its label leads to is wanted all the same: it is found by its name."""
    unlabelled = namespace("p-one", "p")
    del unlabelled["metadata"]["labels"]
    cluster = Cluster(
        paas("p", "one"), config(), unlabelled, asks("p-one", "x"), namespace("p-x", "p", asked_by="p-one/x"), asks("p-x", "y"),
        namespace("p-y", "p", asked_by="p-x/y"),
    )  # fmt: skip
    changes = await cluster.changes("p")
    assert "update Namespace p-one" in changes
    assert not [each for each in changes if each.startswith("delete")]


# -- quotas ------------------------------------------------------------------------------------------------


async def test_a_shared_quota_comes_first() -> None:
    """A Paas whose quota would be that of a clusterwide capability has none, and gives up one that it had."""
    known = {"tekton": {"quotas": {"clusterwide": True, "defaults": {"pods": "1"}}}}
    cluster = Cluster(paas("paas-tekton", "one"), config(capabilities=known), quota("paas-tekton", "paas-tekton"))
    assert await cluster.changes("paas-tekton") == ["delete ClusterResourceQuota paas-tekton"]


LABEL, NEW = "clusterquotagroup", "example.org/quota"
ARGO: dict[str, Any] = {"capabilities": {"argocd": {"enabled": True}}}


def _selecting(name: str, of: str, key: str) -> dict[str, Any]:
    return quota(name, of, spec={"quota": {"hard": {"pods": "9"}}, "selector": {"labels": {"matchLabels": {key: name}}}})


@pytest.mark.parametrize("limits", [{"defaults": {"pods": "1"}}, {}], ids=["with a quota", "with a label alone"])
async def test_a_label_is_enough_to_be_first(limits: dict[str, Any]) -> None:
    """p-95: an older Paas that begins to want a quota of that name does not get it, nor a namespace that would count to it."""
    known = config(capabilities={"argocd": {"quotas": limits}})
    first = namespace("p-argocd-one", "p-argocd", labels={LABEL: "p-argocd"})
    cluster = Cluster(paas("p", **ARGO), paas("p-argocd", "one", quota={}, created="2026-01-03"), known, first, quota("p", "p"))
    assert not [each for each in await cluster.changes("p") if "p-argocd" in each]
    assert (await _told(cluster, "p")).startswith("QuotaConflict: quota p-argocd is Paas p-argocd's, whose namespaces")
    assert not (await _told(cluster, "p-argocd")).startswith("QuotaConflict")


async def test_a_quota_of_another_is_seen_by_who_wants_only_the_label() -> None:
    """p-95: a Paas without a quota of its own makes no namespace that would count to the one of a capability of another."""
    there = (paas("p", created="2026-01-05", **ARGO), config(capabilities={"argocd": {}}), quota("p-argocd", "p"))
    cluster = Cluster(paas("p-argocd", "one", quota={}), *there)
    assert await cluster.changes("p-argocd") == []
    assert (await _told(cluster, "p-argocd")).startswith("QuotaConflict: ClusterResourceQuota p-argocd is Paas p's")


@pytest.mark.parametrize("keeper", ["q", "gone"])
async def test_a_quota_gets_a_new_label_when_no_namespace_of_others_has_it(keeper: str) -> None:
    """p-185: of a Paas that exists; the Paas' own namespaces do not wait."""
    known, mine = config(quota_label=NEW), namespace("p-one", "p", labels={LABEL: "p"})
    theirs = namespace("q-one", keeper, labels={NEW: "p"})
    cluster = Cluster(paas("p", "one"), paas("q", "one"), known, mine, theirs, _selecting("p", "p", LABEL))
    held = keeper == "q"
    assert waits(await cluster.seen("p")) is held
    changes = await cluster.changes("p")
    assert "update Namespace p-one" in changes
    assert ("update ClusterResourceQuota p" in changes) is not held


@pytest.mark.parametrize("selects", [NEW, LABEL])
async def test_a_label_that_was_that_of_quotas_waits_for_the_quotas_of_others(selects: str) -> None:
    """p-185: what a Paas has as a label of its own is not written while a quota of another Paas selects by it."""
    own = paas("p", "one", "two", capabilities={"tekton": {"enabled": True}})
    own["metadata"]["labels"] = {NEW: "q"}
    known = config(capabilities={"tekton": {"quotas": {"clusterwide": True, "defaults": {"pods": "1"}}}})
    there = (paas("q"), known, _selecting("p", "p", NEW), _selecting("q", "q", selects))
    held = selects == NEW
    for name, quota_name in (("one", "p"), ("tekton", "paas-tekton")):
        cluster = Cluster(own, *there, namespace(f"p-{name}", "p", labels={NEW: quota_name}))
        assert waits(await cluster.seen("p")) is held
        made = [_apply(each) for each in (await cluster.plan("p")).writes() if each.key.kind == "Namespace"]
        labels = {each.key.name: each.wanted["metadata"]["labels"] for each in made}
        former = {each: found.get(NEW) for each, found in labels.items()}
        old = {each: quota_name if each == f"p-{name}" else None for each in labels}
        assert former == (old if held else dict.fromkeys(labels, "q"))
        assert {each: found[LABEL] for each, found in labels.items()} == {"p-one": "p", "p-tekton": "paas-tekton", "p-two": "p"}
        assert "update ClusterResourceQuota p" in await cluster.changes("p")


async def test_quotas_of_a_paas_that_is_gone_are_deleted_and_namespaces_stay() -> None:
    """Of objects that are of nobody who exists; what another Paas has is not touched, whatever the label says."""
    label = {"cpet.belastingdienst.nl/managed-by-paas": "p"}
    kept = quota("q-a", "q")
    kept["metadata"]["labels"] = label
    cluster = Cluster(config(), paas("q"), namespace("p-one", "p"), quota("p", "p"), kept)
    assert await cluster.changes("p") == ["delete ClusterResourceQuota p"]
    (event,) = report_paas(await cluster.seen("p"), (), PROJECT_LABEL).writes()
    told = _apply(event).wanted
    assert (told["reason"], told["regarding"]["name"]) == ("PaasGone", "p-one")


# -- deletion ----------------------------------------------------------------------------------------------


async def test_a_deletion_waits_for_the_finalizers_of_others() -> None:
    """Namespaces and quotas go when only ours is left, and then it goes too."""
    there = (config(), namespace("p-one", "p"), quota("p", "p"))
    waits = Cluster(paas("p", "one", deleted=True, finalizers=[PAAS_FINALIZER, RIGHTS_FINALIZER]), *there)
    assert await waits.changes("p") == []
    alone = Cluster(paas("p", "one", deleted=True), *there)
    assert await alone.changes("p") == ["delete Namespace p-one", "delete ClusterResourceQuota p", "update Paas p"]
    assert len((await alone.plan("p")).stages) == 3


async def test_without_a_configuration_only_what_a_declaration_takes_away_goes() -> None:
    """Nothing is made and nothing is changed."""
    argo = {"argocd": {"enabled": True}}
    there = (
        namespace("p-one", "p"),
        namespace("p-old", "p"),
        namespace("p-argocd", "p"),
        quota("p", "p"),
        quota("p-argocd", "p"),
    )
    changes = await Cluster(paas("p", "one", "new", capabilities=argo), *there, quota("p-tekton", "p")).changes("p")
    assert changes == ["delete Namespace p-old", "delete ClusterResourceQuota p-tekton"]


# -- reads -------------------------------------------------------------------------------------------------


async def test_where_all_is_there_nothing_is_read_one_by_one() -> None:
    """The Paas itself, and lists; other Paas are only looked at for names that this one has not."""
    done = {"conditions": [{"type": "tenantry.dev/Namespaces"}]}
    there = namespace("p-q-one", "p-q"), namespace("p-q-two", "p-q"), quota("p-q", "p-q")
    cluster = Cluster({**paas("p-q", "one", "two"), "status": done}, config(), *there)
    await cluster.seen("p-q", [Key("v1", NAMESPACE.kind, "", "p-q-one")])
    assert [each.kind for each in cluster.asked] == ["Paas"]
    new = Cluster(paas("p-q", "one", "two", finalizers=[]), config())
    await new.seen("p-q")
    assert sorted(str(each) for each in new.asked) == [
        "ClusterResourceQuota p-q",
        "Namespace p-q-one",
        "Namespace p-q-two",
        "Paas p",
        "Paas p-q",
    ]
    taken_over = Cluster(paas("p-q", "one", "two"), config(), *there)
    await taken_over.seen("p-q")
    assert [str(each) for each in taken_over.asked] == ["Paas p-q", "Namespace p-q"]
