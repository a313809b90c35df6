"""What a NamespaceScope declares, typed; mistakes in it are kept as texts for its status, and nothing raises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from scope_binding.namespace_scopes.names import HELM_LABEL, PROJECTION
from tenantry.model import limits
from tenantry.model.identifiers import is_dns_subdomain, is_label_key, is_label_value
from tenantry.model.kinds import Object, annotations_of, is_terminating, labels_of

DEFAULT_CONFIG_MAP = "namespace-scope"
DEFAULT_RESTART_LABELS = {"intent": "projected"}

Projection = Literal["managed", "own-roles"]

_KNOWN = frozenset(
    {
        "namespaceMembers",
        "serviceAccountMembers",
        "configmapName",
        "restartLabels",
        "manualManagement",
        "csvInjector",
        "license",
        "allowSubsetProjection",
    }
)


@dataclass(frozen=True, slots=True)
class Scope:
    """One NamespaceScope.

    ``namespace`` is the from namespace, its home.  ``members`` are the names as declared, each once.  ``leaving`` says that it
    is being deleted, or its namespace is.  ``packages`` limits the injection to these, None to none in particular.
    ``problems`` are mistakes that keep a part from being served; ``remarks`` keep nothing from being served.
    """

    live: Object
    name: str
    namespace: str
    uid: str
    leaving: bool
    members: tuple[str, ...]
    accounts: tuple[str, ...]
    config_map: str
    restart_labels: Mapping[str, str]
    projection: Projection
    manual: bool
    subset: bool
    injects: bool
    packages: frozenset[str] | None
    licensed: bool
    problems: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def by_helm(self) -> bool:
        """Whether it must not carry our finalizer."""
        return labels_of(self.live).get(HELM_LABEL) == "true"

    @property
    def follows_roles(self) -> bool:
        """Whether the roles of its accounts at home count: they are copied, or say what rights made by hand should be."""
        return self.projection == "own-roles" or self.manual

    @property
    def injected(self) -> bool:
        """Whether its status says that it injects: then there may be something to put back."""
        return "managedCSVList" in mapping(self.live.get("status"))

    def waits_in(self, member: str) -> bool:
        """Whether its status says that a Role in a member could not be written: any binding there may be the reason."""
        notes = strings(mapping(self.live.get("status")).get("unprojectedRoles"))
        return any(note.startswith(f"{member}/") and note.endswith(f" from namespace {self.namespace}") for note in notes)

    @property
    def served_config_map(self) -> str:
        """The name of its ConfigMap; empty when no ConfigMap can have the declared one."""
        return self.config_map if is_dns_subdomain(self.config_map) else ""


def age_of(live: Object) -> tuple[str, str]:
    """The order of precedence of NamespaceScopes: the older first."""
    return str(live["metadata"].get("creationTimestamp") or ""), str(live["metadata"]["name"])


def mapping(value: Any) -> dict[str, Any]:
    """A value as a map; an empty one where it is none."""
    return value if isinstance(value, dict) else {}


def strings(value: Any) -> tuple[str, ...]:
    """The texts in a list, each once; none where it is no list."""
    entries = value if isinstance(value, list) else []
    return tuple(dict.fromkeys(entry for entry in entries if isinstance(entry, str)))


def declared(live: Object, default: Projection) -> Scope:
    """Read the spec of a NamespaceScope; ``default`` is the configured projection."""
    spec = mapping(live.get("spec"))
    problems: list[str] = []
    accounts = tuple(name for name in strings(spec.get("serviceAccountMembers")) if is_dns_subdomain(name))
    if len(accounts) > limits.ACCOUNTS_OF_HOME:
        problems.append(
            f"spec.serviceAccountMembers has {len(accounts)} names, at most {limits.ACCOUNTS_OF_HOME} are looked at: "
            "split the NamespaceScope"
        )
    config_map = spec.get("configmapName") or DEFAULT_CONFIG_MAP
    if not is_dns_subdomain(config_map):
        problems.append(
            f"spec.configmapName {config_map!r} cannot name a ConfigMap: use lower-case letters, digits, dashes and dots"
        )
    labels = {key: value for key, value in mapping(spec.get("restartLabels")).items() if isinstance(value, str)}
    for key, value in sorted(labels.items()):
        if not (is_label_key(key) and is_label_value(value)):
            problems.append(f"spec.restartLabels: no pod can have the label {key}={value}: correct or remove it")
    projection = annotations_of(live).get(PROJECTION) or default
    if projection not in ("managed", "own-roles"):
        problems.append(f"annotation {PROJECTION}: {projection!r} is neither managed nor own-roles; {default} is in force")
        projection = default
    injector = spec.get("csvInjector")
    packages = mapping(injector).get("managedOperators")
    remarks = [f"spec.{field} is not a known field and has no effect" for field in sorted(set(spec) - _KNOWN)]
    metadata = live["metadata"]
    return Scope(
        live=live,
        name=str(metadata["name"]),
        namespace=str(metadata["namespace"]),
        uid=str(metadata["uid"]),
        leaving=is_terminating(live),
        members=strings(spec.get("namespaceMembers")),
        accounts=accounts[: limits.ACCOUNTS_OF_HOME],
        config_map=config_map,
        restart_labels=labels or DEFAULT_RESTART_LABELS,
        projection=cast(Projection, projection),
        manual=spec.get("manualManagement") is True,
        subset=spec.get("allowSubsetProjection") is True,
        injects=isinstance(injector, dict) and injector.get("enable", True) is True,
        packages=None if packages is None else frozenset(strings(packages)),
        licensed=mapping(spec.get("license")).get("accept") is True,
        problems=tuple(problems),
        remarks=tuple(remarks),
    )
