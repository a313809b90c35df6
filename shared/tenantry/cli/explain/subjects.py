"""Who is asked about, as kubectl's users know them, and the groups that the API server gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tenantry.cli.one_line import WrongUse
from tenantry.model.identifiers import is_dns_subdomain
from tenantry.model.rbac import (
    ACCOUNT_PREFIX,
    ACCOUNTS_GROUP,
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    account_groups,
    account_named,
)

FORMS = "jane, group:devs, system:serviceaccount:NS:NAME or sa:NS/NAME"


class AskedAbout(NamedTuple):
    """A user with groups, or the members of a group; ``text`` is how a person would call them."""

    user: str
    groups: tuple[str, ...]
    text: str


def asked_about(written: str, more_groups: Sequence[str] = ()) -> AskedAbout:
    """Read a subject.

    Raises:
        WrongUse: nobody is called so.
    """
    if "" in more_groups:
        raise WrongUse("--group is empty: name a group, or leave it out")
    if written.startswith("group:"):
        name = written.removeprefix("group:")
        if not name:
            raise WrongUse(f"no group is named: use one of {FORMS}")
        return AskedAbout("", _all((name, *_groups_of_group(name), *more_groups)), f"Group {name}")
    if written.startswith("sa:"):
        namespace, _, name = written.removeprefix("sa:").partition("/")
        written = f"{ACCOUNT_PREFIX}{namespace}:{name}"
        if not (is_dns_subdomain(namespace) and is_dns_subdomain(name)):
            raise WrongUse("a ServiceAccount is written sa:NS/NAME, with the namespace that it is in")
    written = written.removeprefix("user:")
    if not written:
        raise WrongUse(f"nobody is named: use one of {FORMS}")
    if written.startswith(ACCOUNT_PREFIX):
        account = account_named(written)
        if account is None or not is_dns_subdomain(account.name) or not is_dns_subdomain(account.namespace):
            raise WrongUse(f"{written!r} is no ServiceAccount: write {ACCOUNT_PREFIX}NS:NAME or sa:NS/NAME")
        return AskedAbout(written, _all((*account_groups(account.namespace), *more_groups)), str(account))
    own = UNAUTHENTICATED if written == ANONYMOUS else AUTHENTICATED
    return AskedAbout(written, _all((*more_groups, own)), f"User {written}")


def _groups_of_group(name: str) -> tuple[str, ...]:
    if name in (AUTHENTICATED, UNAUTHENTICATED):
        return ()
    if name.startswith(f"{ACCOUNTS_GROUP}:"):
        return account_groups(name.removeprefix(f"{ACCOUNTS_GROUP}:"))
    return (AUTHENTICATED,)


def _all(groups: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(groups))
