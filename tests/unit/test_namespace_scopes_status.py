"""The status of a NamespaceScope tells what was refused and what is not injected, and tells it once."""

from __future__ import annotations

from typing import Any

import pytest
from namespace_scope_objects import NOW, ours, reported, scope, seen

from scope_binding.consent import consent_objects
from scope_binding.namespace_scopes.declared import declared
from scope_binding.namespace_scopes.names import FINALIZER, MANAGER
from tenantry.model.config import NamespaceScopeSettings
from tenantry.model.kinds import CLUSTER_SERVICE_VERSION, CONFIG_MAP, DEPLOYMENT, NAMESPACE_SCOPE, ROLE, Key, Kind
from tenantry.model.plan import Apply, Cause, Refusal
from tenantry.testing.objects import obj


def test_configuration_chooses_the_projection() -> None:
    """Without an annotation the configured projection is in force; further accounts may stand in a consent."""
    settings = NamespaceScopeSettings.model_validate({"projection": "own-roles", "consentAccounts": ["x/y"]})
    assert declared(scope(), settings.projection).projection == "own-roles"
    annotated = scope(annotations={"scope-binding/projection": "managed"})
    assert declared(annotated, settings.projection).projection == "managed"
    role, binding = consent_objects("t1", "ops", subject=("x", "y"))
    found = seen(scope(), consents={"t1": (role, binding)})
    assert "NotAuthorized" in str(reported(found))
    assert "NotAuthorized" not in str(reported(found, settings=settings))


def refusal(kind: Kind, name: str, words: str, cause: Cause = "admission") -> Refusal:
    message = f'admission webhook "w" denied the request. {words}'
    return Refusal(Key(kind.api_version, kind.kind, "ops", name), cause, message)


@pytest.mark.parametrize("leaving", [False, True])
def test_the_same_refusal_in_other_words_is_not_written(leaving: bool) -> None:
    """Words that differ each time, also where the message is cut, are no news; another object, cause or spec is."""
    live = scope(deletionTimestamp=NOW, finalizers=[FINALIZER]) if leaving else scope()

    def told(*refusals: Refusal) -> list[str]:
        """What is written and announced; it is stored."""
        found = seen(live, roles={("t1", "x"): ours("Role", "x")})
        status = [write for write in reported(found, *refusals).writes() if isinstance(write, Apply)]
        said = [str(change) for change in reported(found, *refusals).changes(MANAGER)]
        said += [write.event.reason for write in status if write.event is not None]
        live["status"] = status[0].wanted["status"] if status else {}
        return said

    def both(words: str) -> tuple[Refusal, Refusal]:
        csv = refusal(CLUSTER_SERVICE_VERSION, "my-op.v1.0.0", f"{words * 9}. And so on")
        return csv, refusal(CONFIG_MAP, "namespace-scope", f"request {words}. Ask the administrator. {words}")

    for padding in ("", "long " * 30, "longer " * 100):
        assert len(told(*both(f"{padding}1"))) == 2
        assert told(*both(f"{padding}another")) == told(*both(f"{padding} 3.1")) == []
        live["metadata"]["generation"] += 1
    live["metadata"]["generation"] -= 1
    assert told(refusal(CONFIG_MAP, "namespace-scope", "1", "quota")) != []
    assert told(refusal(CONFIG_MAP, "namespace-scope", "2", "quota")) == []
    assert told(refusal(NAMESPACE_SCOPE, "s", "2", "quota")) != []
    assert leaving or told() != []


READS_LIST = {
    "name": "WATCH_NAMESPACE",
    "valueFrom": {"configMapKeyRef": {"name": "namespace-scope", "key": "namespaces", "optional": True}},
}


@pytest.mark.parametrize(
    ("env", "name", "remarked"),
    [
        (None, "op", True),
        ([{"name": "WATCH_NAMESPACE", "value": "x"}], "op", True),
        ([READS_LIST], "op", False),
        ([{"name": "A"}, READS_LIST], "op", False),
        (None, "another", False),
    ],
    ids=["nothing", "literal", "list", "among-others", "no-deployment"],
)
def test_a_deployment_that_does_not_show_the_injection_is_a_remark(env: list[Any] | None, name: str, remarked: bool) -> None:
    """The condition stays true and names the Deployment and its ClusterServiceVersion; one that is not there is not named."""
    labels = {"operators.coreos.com/op.ops": ""}
    annotations = {"nss.operator.ibm.com/managed-operators": "op"}
    declared_one = {"name": "op", "spec": {"template": {"spec": {"containers": [{"name": "c", "env": [READS_LIST]}]}}}}
    csv = {
        "metadata": {"name": "op.v1", "namespace": "ops", "labels": labels, "annotations": annotations},
        "spec": {"install": {"strategy": "deployment", "spec": {"deployments": [declared_one]}}},
    }
    spec = {"containers": [{"name": "c", "env": env}, {"name": "sidecar"}]}
    live = obj(DEPLOYMENT, name, "ops", spec={"template": {"metadata": {}, "spec": spec}})
    found = seen(scope(spec={"namespaceMembers": ["t1"], "csvInjector": {}}), csvs=(csv,), workloads=(live,))
    (status,) = (write for write in reported(found).writes() if isinstance(write, Apply))
    (told,) = status.wanted["status"]["conditions"]
    text = "Deployment op does not read WATCH_NAMESPACE from ConfigMap namespace-scope yet"
    assert (told["status"], text in told["message"], "op.v1" in told["message"]) == ("True", remarked, remarked)


def test_refused_rights_are_told_without_their_words() -> None:
    """A refused Role is in the status by name."""
    refused = Refusal(Key(ROLE.api_version, ROLE.kind, "t1", "x"), "admission", "request 1")
    (status,) = (write for write in reported(seen(scope()), refused).writes() if isinstance(write, Apply))
    assert status.wanted["status"]["unprojectedRoles"] == ["t1/x: failed to create from namespace ops"]
    assert "request 1" not in str(status.wanted)


def test_what_may_not_be_taken_away_is_told() -> None:
    """A refused deletion is told by the NamespaceScope, also where the namespace is no member any more."""
    for member in ("t1", "left"):
        refusal = Refusal(Key(ROLE.api_version, "Role", member, "gone-0"), "rights", "forbidden")
        found = seen(scope(), roles={(member, "gone-0"): ours("Role", "gone-0", member)})
        (status,) = [write for write in reported(found, refusal).writes() if isinstance(write, Apply)]
        (told,) = status.wanted["status"]["conditions"]
        assert told["status"] == "False"
        assert "gone-0" in told["message"]
