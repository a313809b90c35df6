"""A stolen identity stays inside its fence (a-40 to a-45, a-47): real tokens, and requests that must be refused.

Where rights refuse already the words are RBAC's; everything else is refused by the fence of that identity.  What the functions
need to do is allowed all the same: here by the same thief, and in all other tests, which run under the fences too.
"""

from __future__ import annotations

import pytest
from cages import LOCK_SOURCE, LOCKABLE, SOURCES, THEFTS, Cages, outcome
from rights import cluster_role, user
from thieves import Ask, Attack, Theft, apply, create, delete

from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied, Forbidden, NotFound
from tenantry.local.fence_policy import POLICY
from tenantry.model.flux.consumers import CONSUMER_KINDS
from tenantry.model.flux.names import SOURCE_GRANT, TENANT
from tenantry.model.kinds import (
    ADMISSION_POLICY,
    ADMISSION_POLICY_BINDING,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CLUSTER_SERVICE_VERSION,
    CONFIG_MAP,
    HELM_RELEASE,
    NAMESPACE,
    NAMESPACE_SCOPE,
    NETWORK_POLICY,
    POD,
    PROJECT_HELM_CHART,
    SCOPE_TEMPLATE,
    SECRET,
    SERVICE_ACCOUNT,
)
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.model.paas.names import APPLICATION_SET, GROUP
from tenantry.serving.installed import service_named
from tenantry.testing import eventually
from tenantry.testing.objects import obj

OPEN = {
    "a-40": "whether a Tenant names a namespace no policy can see: of its labels only those that mean something else are bounded",
    "a-41": "that a Role is a chart's no policy can say: it sees the binding and not the Role",
    "a-42": "whether a HelmChart exists, and what its archive holds, no policy can say: the rights of the Job's account bound it",
    "a-43": "what templates and consents declare no policy can see: only marks, owners, names, verbs and subjects are bounded",
    "a-44": "what a release has and what spec.allow names no policy can see: only Helm's marks and system namespaces are bounded",
}


def _attacks() -> list[object]:
    return [
        pytest.param(theft, attack, id=f"{theft.function}-{attack.title}", marks=_check(theft, fenced=attack.is_by_fence))
        for theft in THEFTS
        for attack in theft.attacks
    ]


def _check(theft: Theft, *, fenced: bool) -> pytest.MarkDecorator:
    """The check, and that it fails without the fence where the fence is what refuses."""
    more = {"without": theft.fence} if fenced else {}
    return pytest.mark.check(theft.check, **more, **({"open": OPEN[theft.check]} if theft.check in OPEN else {}))


@pytest.mark.parametrize(("theft", "attack"), _attacks())
async def test_a_thief_is_refused(cages: Cages, theft: Theft, attack: Attack) -> None:
    """The request is refused, in the words that say what the function may do instead."""
    refused = await outcome(cages.thieves[theft.function], attack.ask)
    assert refused is not None, f"allowed: {attack.ask}"
    assert attack.words in refused.message, refused.message
    if attack.is_by_fence:
        assert isinstance(refused, AdmissionDenied)
        assert f"'{POLICY}" in refused.message, refused.message


@pytest.mark.parametrize("theft", [pytest.param(theft, id=theft.function, marks=_check(theft, fenced=False)) for theft in THEFTS])
async def test_what_a_function_needs_is_allowed(cages: Cages, theft: Theft) -> None:
    """Requests like those of the function pass its fence."""
    for need in theft.needs:
        assert await outcome(cages.thieves[theft.function], need) is None, f"refused: {need}"


DUTIES = [
    pytest.param(one, other, id=f"{one.function}-as-{other.function}", marks=pytest.mark.check(one.check, open=OPEN[one.check]))
    for one in THEFTS
    for other in THEFTS
    if one is not other and service_named(one.function).function == service_named(other.function).function
]


@pytest.mark.parametrize(("theft", "other"), DUTIES)
async def test_a_thief_of_one_duty_may_nothing_that_another_needs(cages: Cages, theft: Theft, other: Theft) -> None:
    """Where duties of a function run apart, each request that one needs is refused to whoever has the token of the other."""
    assert other.needs
    for need in other.needs:
        refused = await outcome(cages.thieves[theft.function], need)
        # A binding to a Role that is not there RBAC looks at before it says whether it is allowed.
        assert isinstance(refused, Forbidden | AdmissionDenied | NotFound), f"{need}: {refused}"


KUSTOMIZATION = CONSUMER_KINDS[0]
SEEN = {
    "tenantry-source-namespace-registration": NETWORK_POLICY,
    "tenantry-source-release-provisioning": HELM_RELEASE,
    "tenantry-source-rbac-aggregation": PROJECT_HELM_CHART,
    "tenantry-source-rbac-aggregation-paas": GROUP,
    "tenantry-source-rbac-aggregation-tenants": TENANT,
    "tenantry-source-release-provisioning-tenants": TENANT,
    "tenantry-source-scope-binding": SCOPE_TEMPLATE,
    "tenantry-source-scope-binding-namespace-scopes": NAMESPACE_SCOPE,
    "tenantry-source-scope-binding-olm": CLUSTER_SERVICE_VERSION,
    "tenantry-source-scope-binding-paas": CLUSTER_ROLE_BINDING,
    "tenantry-source-scope-binding-sources": SOURCE_GRANT,
    "tenantry-source-lock-enforcement-access": KUSTOMIZATION,
    "tenantry-source-release-provisioning-paas": APPLICATION_SET,
    LOCK_SOURCE: SECRET,
}
"""Of each source's identity a kind that it watches and most others do not."""


@pytest.mark.check(
    "a-45", open="the source of locks reads Secrets whole: rights know no metadata alone, and admission sees no reads"
)
@pytest.mark.parametrize("account", SEEN)
async def test_a_source_reads_the_kinds_of_its_function(cages: Cages, account: str) -> None:
    """Whoever has its token sees what that function's sources watch, and nothing of what others do."""
    assert SEEN.keys() == set(SOURCES)
    await cages.thieves[account].list(SEEN[account])
    service = service_named(account.removeprefix("tenantry-source-"))
    watched = {watch.kind for source in service.sources for watch in source.watches}  # some kinds two watch
    given = {kind for kind in SEEN.values() if account == LOCK_SOURCE and kind.plural in LOCKABLE.get(kind.group, ())}
    for kind in {*SEEN.values()} - {SEEN[account]} - watched - given:
        with pytest.raises(Forbidden):
            await cages.thieves[account].list(kind)


@pytest.mark.check("a-44", without="tenantry-fence-lock-enforcement", open=OPEN["a-44"])
async def test_a_thief_makes_no_object_without_marks_of_helm(cages: Cages, admin: Api) -> None:
    """Not only as a dry run, which the function makes without marks to learn whether an object can be made anew."""
    made = obj(CONFIG_MAP, "unmarked", "locked-fence", data={"a": "1"})
    with pytest.raises(AdmissionDenied, match="only objects with Helm's marks"):
        await cages.thieves["lock-enforcement"].create(CONFIG_MAP, made)
    assert await admin.get(CONFIG_MAP, "unmarked", "locked-fence") is None


EVERYBODY = [*(theft.function for theft in THEFTS), *SOURCES]


def _privileged(account: str) -> list[Ask]:
    """What would lead a thief out of every fence."""
    role = f"tenantry-{account.removeprefix('tenantry-')}"
    of = {"kubernetes.io/service-account.name": account}
    pod = {"serviceAccountName": "default", "containers": [{"name": "c", "image": "evil"}]}
    binding = obj(CLUSTER_ROLE_BINDING, role, roleRef=cluster_role(role), subjects=[user("eve")])
    return [
        create(POD, obj(POD, "mine", "kube-system", spec=pod)),
        create(SECRET, obj(SECRET, "mine", SYSTEM_NAMESPACE, annotations=of, type="kubernetes.io/service-account-token")),
        apply(ADMISSION_POLICY, obj(ADMISSION_POLICY, POLICY, spec={"failurePolicy": "Ignore"})),
        delete(ADMISSION_POLICY, POLICY),
        delete(ADMISSION_POLICY_BINDING, POLICY),
        apply(CLUSTER_ROLE, obj(CLUSTER_ROLE, role, rules=[{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])),
        apply(CLUSTER_ROLE_BINDING, binding),
        create(CLUSTER_ROLE_BINDING, {**binding, "metadata": {"name": "mine"}}),
    ]


@pytest.mark.parametrize(
    "account",
    [
        pytest.param(
            each, marks=pytest.mark.check("a-47", **({"without": f"tenantry-fence-{each}"} if each == "scope-binding" else {}))
        )
        for each in EVERYBODY
    ],
)
async def test_no_thief_changes_what_bounds_him(cages: Cages, account: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No token of another account, no pod under one, no impersonation, no change of his own rights and fence."""
    thief = cages.thieves[account]
    plain = thief._headers
    for what in _privileged(account):
        refused = await outcome(thief, what)
        assert isinstance(refused, Forbidden | AdmissionDenied), f"{what}: {refused}"
    for other in (*EVERYBODY, "default"):
        path = SERVICE_ACCOUNT.path(SYSTEM_NAMESPACE, other) + "/token"
        with pytest.raises(Forbidden):
            await thief.request(
                "POST", path, {"dryRun": "All"}, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
            )
    for name, value in (("Impersonate-User", "system:admin"), ("Impersonate-Group", "system:masters")):
        monkeypatch.setattr(thief, "_headers", {**plain, "Impersonate-User": "somebody", name: value})
        with pytest.raises(Forbidden, match="cannot impersonate"):
            await thief.request("GET", NAMESPACE.path())


@pytest.mark.check(
    "a-45",
    without="tenantry-fence-sources",
    open="the source of locks reads Secrets whole: rights know no metadata alone, and admission sees no reads",
)
async def test_sources_write_nothing(cages: Cages) -> None:
    """Not even kinds that an administrator gave the source of locks by mistake; and no other source reads Secrets."""
    lock_source = cages.thieves[LOCK_SOURCE]
    marked = obj(CONFIG_MAP, "mine", "default", data={})
    for source in (cages.thieves[name] for name in SOURCES if name != LOCK_SOURCE):
        with pytest.raises(Forbidden):
            await source.create(CONFIG_MAP, marked, dry_run=True)
        with pytest.raises(Forbidden):
            await source.list(SECRET)
    for what in (create(CONFIG_MAP, marked), delete(CONFIG_MAP, "theirs-of-helm", "locked-fence")):

        async def refused(what: Ask = what) -> bool:
            return "they write nothing" in getattr(await outcome(lock_source, what), "message", "")

        await eventually(refused, what=str(what))
    assert (await lock_source.list(CONFIG_MAP, "locked-fence")).items
