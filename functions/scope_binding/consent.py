"""Consent: how the owner of a namespace lets another namespace's operators act in it (N-10, N-16).

A Role ``nss-managed-role-from-<from>`` in the member namespace says what may be given at most; a RoleBinding of
the same name binds it to an agreed ServiceAccount.  Nothing is given in a namespace without both.

To Kubernetes a consent is a right like any other: whom it binds has all of it at once.  So ours binds an account that
nobody is.  That of the IBM operator binds ``ibm-namespace-scope-operator`` in the from namespace, and whoever makes accounts
there can be that.

Names outlive what they name: a from namespace that was deleted and made again may be somebody else's.  So a consent is
for one namespace and not for its name, see `is_given_to`.
"""

from __future__ import annotations

from scope_binding.objects import account_subject, binding_of
from tenantry.model.kinds import ROLE, ROLE_BINDING, Object, annotations_of, object_of
from tenantry.model.names import SYSTEM_NAMESPACE

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
"""The verbs that a NamespaceScope gives; ``*`` in a rule stands for these and no other."""

AGENT = "ibm-namespace-scope-operator"
"""The ServiceAccount in the from namespace that consents for the IBM operator bind."""

NOBODY = (SYSTEM_NAMESPACE, "namespace-scope-consent")
"""The ServiceAccount, as (namespace, name), that a consent binds by default: one that is never made."""

FROM_UID = "scope-binding/from-namespace-uid"
"""Annotation on the RoleBinding of a consent: the uid of the from namespace that it was given to."""

DEFAULT_FROM = "ibm-common-services"
"""The from namespace of ``authorize-namespace`` without ``--to``."""

FULL_CONSENT: tuple[Object, ...] = (
    {
        "apiGroups": ["*"],
        "resources": ["*"],
        "verbs": ["create", "delete", "get", "list", "patch", "update", "watch", "deletecollection"],
    },
)
"""The rules of a consent that names none: those eight verbs on everything."""


def consent_name(from_namespace: str) -> str:
    """The name of both objects of a consent."""
    return f"nss-managed-role-from-{from_namespace}"


def consent_objects(
    member: str, from_namespace: str, rules: tuple[Object, ...] = FULL_CONSENT, subject: tuple[str, str] | None = None
) -> tuple[Object, Object]:
    """The Role and the RoleBinding of a consent; ``subject`` is (namespace, name) of a ServiceAccount, by default nobody's."""
    metadata = {"name": consent_name(from_namespace), "namespace": member}
    role = object_of(ROLE, metadata, rules=list(rules))
    return role, binding_of(ROLE_BINDING, metadata, (ROLE, metadata["name"]), [account_subject(*(subject or NOBODY))])


def given_to(binding: Object, uid: str) -> Object:
    """The RoleBinding of a consent as it is for the namespace with this uid alone."""
    return {**binding, "metadata": {**binding["metadata"], "annotations": {FROM_UID: uid}}}


def is_given_to(binding: Object, from_namespace: Object) -> bool:
    """Whether the RoleBinding of a consent is for this very namespace, and not for an earlier one of its name (a-37).

    It names the namespace by uid.  Without one it counts if it is not older than the namespace, to the second, as fine as the
    API server's timestamps are: what was there before cannot have been meant for it.
    """
    uid = annotations_of(binding).get(FROM_UID)
    if uid is not None:
        return uid == str(from_namespace["metadata"].get("uid"))
    made, begun = (str(each["metadata"].get("creationTimestamp") or "") for each in (binding, from_namespace))
    return made >= begun
