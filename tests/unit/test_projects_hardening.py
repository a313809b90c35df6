"""A registration namespace is hardened as configured, and stays so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from project_objects import CHARTS, CONFIG, NAME, changes, config, project, reasons, settled, wanted

from namespace_registration.projects.plan import plan_project
from tenantry.model.hardening import Hardening, with_policy_defaults
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, NETWORK_POLICY, SERVICE_ACCOUNT, Object
from tenantry.model.names import OPERATED
from tenantry.model.projects import REGISTRATION_MANAGER as US
from tenantry.testing.objects import obj


@pytest.mark.check("hpo-22")
def test_hardening_by_default() -> None:
    """The default ServiceAccount gets no token, and a NetworkPolicy denies all ingress and egress for all pods."""
    plan = plan_project(project(), (), CONFIG)
    account, policy = wanted(plan, SERVICE_ACCOUNT), wanted(plan, NETWORK_POLICY)
    assert account["automountServiceAccountToken"] is False
    assert "secrets" not in account
    assert "imagePullSecrets" not in account
    assert policy["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": [], "egress": []}
    assert account["metadata"] == {"name": "default", "namespace": NAME, "labels": {OPERATED: "true"}}
    assert policy["metadata"] == {"name": "hpo-generated-default", "namespace": NAME, "labels": {OPERATED: "true"}}


@pytest.mark.check("hpo-23")
def test_hardening_is_restored() -> None:
    """Edits of either are put back with an Event; a ServiceAccount that we see for the first time is no restoration."""
    seen = settled(project())
    account, policy = seen.hardening.service_account, seen.hardening.network_policy
    assert account is not None
    assert policy is not None
    opened = {**policy, "spec": {**policy["spec"], "egress": [{}]}}
    edited = {**account, "automountServiceAccountToken": True}
    plan = plan_project(replace(seen, hardening=Hardening(edited, opened)), CHARTS, CONFIG)
    assert changes(plan) == [
        f"update ServiceAccount {NAME}/default: ~ automountServiceAccountToken",
        f"update NetworkPolicy {NAME}/hpo-generated-default: ~ spec.egress",
    ]
    assert reasons(plan) == ["Restored", "Restored"]
    fresh = obj(SERVICE_ACCOUNT, "default", NAME, metadata={"uid": "u"})
    first = plan_project(replace(seen, hardening=Hardening(fresh, policy)), CHARTS, CONFIG)
    assert [change.verb for change in first.changes(US)] == ["update"]
    assert reasons(first) == []


@pytest.mark.check("hpo-24")
def test_hardening_switched_off() -> None:
    """Neither object is wanted, and nothing that is there is removed."""
    plan = plan_project(project(), CHARTS, config(hardenedNamespaces={"enabled": False}))
    assert {write.kind for write in plan.writes()} == {NAMESPACE, CONFIG_MAP}


@pytest.mark.check("hpo-25")
def test_hardening_as_configured() -> None:
    """The configured token setting, secrets and NetworkPolicy are the ones that are written."""
    account = {"automountServiceAccountToken": True, "secrets": [{"name": "s"}], "imagePullSecrets": [{"name": "p"}]}
    spec = {"podSelector": {"matchLabels": {"a": "b"}}, "ingress": [{}]}
    used = config(hardenedNamespaces={"configuration": {"serviceAccountSpec": account, "networkPolicySpec": spec}})
    plan = plan_project(project(), (), used)
    made = wanted(plan, SERVICE_ACCOUNT)
    assert {key: made[key] for key in account} == account
    assert wanted(plan, NETWORK_POLICY)["spec"] == {**spec, "egress": [], "policyTypes": ["Ingress"]}
    assert changes(plan_project(settled(project(), used), CHARTS, used)) == []


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({}, {"podSelector": {}, "ingress": [], "egress": [], "policyTypes": ["Ingress"]}),
        ({"egress": [{}]}, {"podSelector": {}, "ingress": [], "egress": [{}], "policyTypes": ["Ingress", "Egress"]}),
        ({"policyTypes": ["Egress"]}, {"podSelector": {}, "ingress": [], "egress": [], "policyTypes": ["Egress"]}),
        (
            {"policyTypes": [], "egress": None, "podSelector": None},
            {"podSelector": {}, "ingress": [], "egress": [], "policyTypes": ["Ingress"]},
        ),
        ({"podSelector": {"matchLabels": {}}}, {"podSelector": {}, "ingress": [], "egress": [], "policyTypes": ["Ingress"]}),
        (
            {
                "ingress": [
                    {"ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}, {"protocol": None}], "from": []},
                    {"from": [{"podSelector": {}}]},
                ]
            },
            {
                "podSelector": {},
                "ingress": [
                    {"ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}, {"protocol": "TCP"}]},
                    {"from": [{"podSelector": {}}]},
                ],
                "egress": [],
                "policyTypes": ["Ingress"],
            },
        ),
        (
            {
                "egress": [
                    {
                        "to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": []}, "namespaceSelector": {"matchLabels": {}}}],
                        "ports": [],
                    }
                ]
            },
            {
                "podSelector": {},
                "ingress": [],
                "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}, "namespaceSelector": {}}]}],
                "policyTypes": ["Ingress", "Egress"],
            },
        ),
        # What is wrong is left for the API server to refuse.
        (
            {"ingress": ["x", {"ports": "y"}, {"ports": ["z"]}], "egress": "all"},
            {
                "podSelector": {},
                "ingress": ["x", {"ports": "y"}, {"ports": ["z"]}],
                "egress": "all",
                "policyTypes": ["Ingress", "Egress"],
            },
        ),
    ],
)
def test_policy_defaults(given: Object, stored: Object) -> None:
    """A spec is written as the API server stores it (networking/v1 defaults), so that it does not differ from itself."""
    assert with_policy_defaults(given) == stored
    assert with_policy_defaults(stored) == stored
