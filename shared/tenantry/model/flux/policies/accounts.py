"""Who deliveries are applied as, where to, and which cluster: accounts, target namespaces, kubeconfigs (sections 2.3 and 3.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tenantry.model.flux.consumers import HELM_GROUP, KUSTOMIZE_GROUP, OPERATOR_GROUP
from tenantry.model.flux.names import ACCOUNT_LABEL, TENANT_LABEL
from tenantry.model.flux.policies.parts import LOCKS, NOT_GOING, WRITES, AdmissionPolicy, rule, text, validation
from tenantry.model.flux.profile import AccountMode, Profile
from tenantry.model.kinds import Object


@dataclass(frozen=True, slots=True)
class Applier:
    """A kind whose objects are applied as an account; ``targets``: the fields that say where to."""

    group: str
    resource: str
    has_kube_config: bool
    targets: tuple[str, ...] = ()


APPLIERS = (
    Applier(KUSTOMIZE_GROUP, "kustomizations", True, ("targetNamespace",)),
    Applier(HELM_GROUP, "helmreleases", True, ("targetNamespace", "storageNamespace")),
    Applier(OPERATOR_GROUP, "resourcesets", False),
)


@dataclass(frozen=True, slots=True)
class _Judged:
    """One of the things that are judged; ``concerned``: an expression of which objects, empty for all."""

    validations: Sequence[Object]
    concerned: str
    variables: Mapping[str, str] = field(default_factory=dict)
    takes_index: bool = False


def account_policies(
    applier: Applier, versions: tuple[str, ...], profile: Profile, *, mutates: bool
) -> Iterator[AdmissionPolicy]:
    """Those of one kind; ``mutates``: the server has mutations, and they are to be used.

    Account, targets and kubeconfig are one policy: most objects end at its condition, and each policy has a price of its own.
    """
    rules = [rule(applier.group, versions, [applier.resource], WRITES)]
    mode = profile.account_mode(mutates=mutates)
    if mode == "Default" and not profile.is_audit:
        yield _filled(applier, rules, profile)
    judged = [_account(applier, profile, mode)]
    if applier.targets:
        judged.append(_targets(applier, profile))
    if applier.has_kube_config and profile.denies_kube_config:
        judged.append(_KUBE_CONFIG)
    judged = [each for each in judged if each.validations]
    if judged:
        concerned = [each.concerned for each in judged]
        yield AdmissionPolicy(
            f"delivery-{applier.resource}",
            rules,
            [one for each in judged for one in each.validations],
            conditions=[*([" || ".join(concerned)] if all(concerned) else []), NOT_GOING],
            variables={name: value for each in judged for name, value in each.variables.items()},
            takes_index=any(each.takes_index for each in judged),
        )


def _no_account(applier: Applier, of: str) -> str:
    """Whether an object has no account, and no kubeconfig either."""
    empty = f'{of}.?spec.?serviceAccountName.orValue("") == ""'
    return f"({empty} && !{of}.?spec.?kubeConfig.hasValue())" if applier.has_kube_config else f"({empty})"


def _tenants_account(profile: Profile) -> str:
    """The name of the account that an object of a namespace is to have."""
    default = text(profile.default_service_account)
    if not profile.pins_to_tenant:
        return default
    return f"namespaceObject.metadata.?labels[?{text(ACCOUNT_LABEL)}].orValue({default})"


def _filled(applier: Applier, rules: list[dict[str, object]], profile: Profile) -> AdmissionPolicy:
    without = f"has(object.spec) && {_no_account(applier, 'object')}"
    patch = f'[JSONPatch{{op: "add", path: "/spec/serviceAccountName", value: {_tenants_account(profile)}}}]'
    return AdmissionPolicy(
        f"default-account-{applier.resource}",
        rules,
        mutations=[patch],
        # Without a spec there is nothing to add it to: the API server or the controller refuses that.
        # The fence of lock-enforcement would take what is filled in for a write of its own, and refuse a lock.
        conditions=[without, NOT_GOING, f"!({LOCKS})"],
    )


def _account(applier: Applier, profile: Profile, mode: AccountMode) -> _Judged:
    """Behind the mutation; in Audit what it would fill is not told."""
    validations = []
    if mode == "Require" or (mode == "Default" and not profile.is_audit):
        validations.append(
            validation(
                f"!{_no_account(applier, 'object')} || (oldObject != null && {_no_account(applier, 'oldObject')})",
                f"spec.serviceAccountName: name the account of the tenant, such as {profile.default_service_account}",
            )
        )
    if profile.pins_to_tenant:
        name = 'object.?spec.?serviceAccountName.orValue("")'
        same = f'(oldObject != null && oldObject.?spec.?serviceAccountName.orValue("") == {name})'
        # What would be filled is not told in Audit; elsewhere it is filled before, or it is the account of the controller.
        unfilled = f'{name} == "" || ' if mode == "Default" and profile.is_audit else ""
        other = "object.?spec.?kubeConfig.hasValue() || " if applier.has_kube_config else ""
        if applier.has_kube_config:
            same = f"({same} && !oldObject.?spec.?kubeConfig.hasValue())"
        validations.append(
            validation(
                f"{other}{unfilled}{name} == variables.account || {same}",
                "spec.serviceAccountName: only the account of the tenant",
                f'"spec.serviceAccountName: " + {name} + ": in namespace " + request.namespace + " only " + variables.account',
            )
        )
    variables = {"account": _tenants_account(profile)} if profile.pins_to_tenant else {}
    return _Judged(validations, "" if profile.pins_to_tenant else _no_account(applier, "object"), variables)


def _targets(applier: Applier, profile: Profile) -> _Judged:
    variables = {}
    if profile.allows_intra_tenant:
        variables["tenant"] = f'namespaceObject.metadata.?labels[?{text(TENANT_LABEL)}].orValue("")'
    validations = []
    for target in applier.targets:
        named = f'object.?spec.?{target}.orValue("")'
        allowed = f'{named} in ["", request.namespace] || '
        if profile.allows_intra_tenant:
            allowed += (
                f'(variables.tenant != "" && params.?spec.?tenants.orValue({{}})[?{named}].orValue("") == variables.tenant) || '
            )
        allowed += f'(oldObject != null && oldObject.?spec.?{target}.orValue("") == {named})'
        message = f"spec.{target}: only the namespace of the object"
        validations.append(validation(allowed, message, f'"spec.{target}: " + {named} + ": only namespace " + request.namespace'))
    stated = " || ".join(f'object.?spec.?{target}.orValue("") != ""' for target in applier.targets)
    return _Judged(validations, stated, variables, takes_index=profile.allows_intra_tenant)


_HAS_KUBE_CONFIG = "object.?spec.?kubeConfig.hasValue()"
_KUBE_CONFIG = _Judged(
    [
        validation(
            f"!{_HAS_KUBE_CONFIG} || (oldObject != null && oldObject.?spec.?kubeConfig == object.?spec.?kubeConfig)",
            "spec.kubeConfig: other clusters are not allowed here",
        )
    ],
    _HAS_KUBE_CONFIG,
)
