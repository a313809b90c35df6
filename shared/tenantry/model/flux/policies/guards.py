"""Guards of what the rest relies on: labels and life of namespaces, what was made for Tenants, the AccessIndex (section 3.4).

No guard takes a parameter: one on Namespaces would stop all of them when the AccessIndex is missing.
"""

from __future__ import annotations

from collections.abc import Iterator

from tenantry.model.flux.consumers import KUSTOMIZE_GROUP
from tenantry.model.flux.names import ACCESS_INDEX, MADE_FOR_TENANT, SOURCE_GROUP
from tenantry.model.flux.policies.parts import (
    CREATE,
    DELETE,
    LOCKS,
    PLATFORM,
    UPDATE,
    WRITES,
    AdmissionPolicy,
    listed,
    rule,
    validation,
)
from tenantry.model.flux.policies.served import Served
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import CUSTOM_RESOURCE_DEFINITION, ROLE_BINDING

_OF_THE_API_SERVER = "kubernetes.io/metadata.name"


def guard_policies(served: Served, profile: Profile) -> Iterator[AdmissionPolicy]:
    """Those that do not depend on consumers."""
    yield _protected_labels(profile)
    yield AdmissionPolicy(
        "namespace-delete",
        [rule("", ["v1"], ["namespaces"], [DELETE], scope="Cluster")],
        [validation(PLATFORM, "a namespace is deleted by the platform")],
        conditions=(),
    )
    yield from _managed(served)
    is_index = f'request.resource.resource == "{ACCESS_INDEX.plural}"'
    is_its_kind = f'oldObject.metadata.name == "{ACCESS_INDEX.plural}.{ACCESS_INDEX.group}"'
    yield AdmissionPolicy(
        "index-undeletable",
        [
            rule(ACCESS_INDEX.group, ["v1alpha1"], [ACCESS_INDEX.plural], [DELETE], scope="Cluster"),
            rule(CUSTOM_RESOURCE_DEFINITION.group, ["v1"], [CUSTOM_RESOURCE_DEFINITION.plural], [DELETE], scope="Cluster"),
        ],
        [
            validation(
                "false",
                "without the AccessIndex no consumer can be written; make the TenancyProfile single-tenant, then "
                "`tenantry profile apply`",
            )
        ],
        conditions=[f"{is_index} || {is_its_kind}"],
        everywhere=True,
    )


def _protected_labels(profile: Profile) -> AdmissionPolicy:
    keys = [each for each in profile.tenant_label_keys if not each.endswith("/*")]
    prefixes = [each.removesuffix("*") for each in profile.tenant_label_keys if each.endswith("/*")]
    new, old = "object.metadata.?labels.orValue({})", "variables.old"
    open_to_tenants = f"key in {listed([_OF_THE_API_SERVER, *keys])}"
    if prefixes:
        open_to_tenants += f" || {listed(prefixes)}.exists(prefix, key.startsWith(prefix))"
    changed = (
        f"({new}.filter(key, {new}[?key] != {old}[?key]) + {old}.filter(key, !(key in {new}))).filter(key, !({open_to_tenants}))"
    )
    return AdmissionPolicy(
        "protected-labels",
        [rule("", ["v1"], ["namespaces", "namespaces/status", "namespaces/finalize"], WRITES, scope="Cluster")],
        [
            validation(
                f"({changed}).size() == 0 || {PLATFORM}",
                "metadata.labels: labels of namespaces say who may use what; they are written by the platform",
                'variables.changed.map(key, "metadata.labels[" + key + "]").join(", ") + ": labels of namespaces say who may use '
                'what; they are written by the platform"',
            )
        ],
        # Of a namespace that ends, too: objects in it can hold it for long, and its labels count as long.
        conditions=(),
        variables={"old": "oldObject == null ? {} : oldObject.metadata.?labels.orValue({})", "changed": changed},
        everywhere=True,
    )


def _managed(served: Served) -> Iterator[AdmissionPolicy]:
    """For each kind one, since each has other fields."""
    kinds = [
        ("", "serviceaccounts", ("v1",), ("secrets", "imagePullSecrets", "automountServiceAccountToken")),
        (ROLE_BINDING.group, ROLE_BINDING.plural, ("v1",), ("subjects", "roleRef")),
        (SOURCE_GROUP, "gitrepositories", served.versions(SOURCE_GROUP, "gitrepositories"), ("spec",)),
        (KUSTOMIZE_GROUP, "kustomizations", served.versions(KUSTOMIZE_GROUP, "kustomizations"), ("spec",)),
    ]
    for group, resource, versions, fields in kinds:
        if not versions:
            continue
        same = " && ".join(f"object.?{each} == oldObject.?{each}" for each in ("metadata.?labels", "metadata.?ownerReferences"))
        same += "".join(f" && object.?{each} == oldObject.?{each}" for each in fields)
        locks = f" || {LOCKS}" if resource == "kustomizations" else ""  # it suspends them
        yield AdmissionPolicy(
            f"managed-objects-{resource}",
            [rule(group, versions, [resource], [CREATE, UPDATE, DELETE])],
            [
                validation(
                    f'(request.operation == "UPDATE" && {same}) || {PLATFORM}{locks}',
                    f"metadata.labels[{MADE_FOR_TENANT}]: what was made for a Tenant is changed by its Tenant only",
                )
            ],
            conditions=(),
            label=MADE_FOR_TENANT,
        )
