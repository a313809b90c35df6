"""What decides the content of a delivery: charts made elsewhere, and the status of sources (section 3.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tenantry.model.flux.consumers import HELM_GROUP
from tenantry.model.flux.names import (
    CHART_OWNER_NAME,
    CHART_OWNER_NAMESPACE,
    IMAGE_GROUP,
    SOURCE_GROUP,
    SOURCES,
)
from tenantry.model.flux.policies.parts import (
    CREATE,
    DELETE,
    LOCKS,
    NOT_GOING,
    PRODUCER,
    UPDATE,
    WRITES,
    AdmissionPolicy,
    listed,
    rule,
    validation,
)
from tenantry.model.flux.policies.served import Served, plural_of

_PRODUCES = "written by the controllers of sources, and by the platform, for it decides what is deployed"


def chart_policies(served: Served) -> Iterator[AdmissionPolicy]:
    """Those of the kinds that are served."""
    if releases := served.versions(HELM_GROUP, "helmreleases"):
        yield _release_chart(releases)
        yield _release_status(releases)
    if charts := served.versions(SOURCE_GROUP, "helmcharts"):
        yield _chart_owner(charts)
    if rules := _status_rules(served):
        yield AdmissionPolicy(
            "source-status",
            rules,
            [validation(PRODUCER, f"status: {_PRODUCES}")],
            conditions=(),
            everywhere=True,
        )
    if artifacts := served.versions(SOURCE_GROUP, "externalartifacts"):
        yield AdmissionPolicy(
            "external-artifact",
            [rule(SOURCE_GROUP, artifacts, ["externalartifacts"], [CREATE, UPDATE, DELETE])],
            [validation(PRODUCER, f"an ExternalArtifact is {_PRODUCES}")],
            conditions=(),
        )


def _release_chart(versions: Sequence[str]) -> AdmissionPolicy:
    """The HelmChart of a HelmRelease is made in the namespace of the source, with this metadata and this Secret."""
    maps = [
        f"{of}.?spec.?chart.?metadata.?{part}.orValue({{}})"
        for of in ("object", "oldObject")
        for part in ("labels", "annotations")
    ]
    keys = (
        '{new}.filter(key, {new}[?key] != {old}[?key] && (key.startsWith("tenantry.dev/") || '
        '(key.contains("/") && ("." + key.split("/")[0]).endsWith(".toolkit.fluxcd.io"))))'
        '.map(key, "spec.chart.metadata.{part}[" + key + "]")'
    )
    old_labels, old_annotations = (f"oldObject == null ? {{}} : {each}" for each in maps[2:])
    reserved = " + ".join(
        keys.format(new=maps[number], old=f"variables.{old}", part=part)
        for number, (old, part) in enumerate((("oldLabels", "labels"), ("oldAnnotations", "annotations")))
    )
    verified, source = "{of}.?spec.?chart.?spec.?verify.?secretRef", "{of}.?spec.?chart.?spec.?sourceRef"
    namespace = 'dyn(object).?spec.?chart.?spec.?sourceRef.?namespace.orValue("")'
    same = " && ".join(f"{each.format(of='oldObject')} == {each.format(of='object')}" for each in (verified, source))
    return AdmissionPolicy(
        "helmrelease-chart",
        [rule(HELM_GROUP, versions, ["helmreleases"], WRITES)],
        [
            validation(
                f"({reserved}).size() == 0",
                "spec.chart.metadata: keys of tenancy and of Flux",
                'variables.reserved.join(", ") + ": keys of tenancy and of Flux are not set on charts; take them out"',
            ),
            validation(
                f'!{verified.format(of="object")}.hasValue() || {namespace} in ["", request.namespace] || '
                f"(oldObject != null && {same})",
                "spec.chart.spec.verify.secretRef: not with a source of another namespace, whose Secret it would be",
            ),
        ],
        variables={"oldLabels": old_labels, "oldAnnotations": old_annotations, "reserved": reserved},
    )


def _chart_owner(versions: Sequence[str]) -> AdmissionPolicy:
    """Two HelmReleases can want one HelmChart: it stays that of the first."""
    keys = listed([CHART_OWNER_NAME, CHART_OWNER_NAMESPACE])
    new, old = (f"{each}.metadata.?labels.orValue({{}})" for each in ("object", "oldObject"))
    owner = ' + "/" + '.join(f'{old}[?"{each}"].orValue("")' for each in (CHART_OWNER_NAMESPACE, CHART_OWNER_NAME))
    return AdmissionPolicy(
        "helmchart-owner",
        [rule(SOURCE_GROUP, versions, ["helmcharts"], [UPDATE])],
        [
            validation(
                f"{keys}.all(key, !(key in {old}) || {new}[?key] == {old}[?key])",
                "metadata.labels: the HelmChart belongs to another HelmRelease",
                f'"metadata.labels: the HelmChart belongs to HelmRelease " + {owner} + "; give one of them another name"',
            )
        ],
        everywhere=True,
        conditions=[NOT_GOING],
    )


def _release_status(versions: Sequence[str]) -> AdmissionPolicy:
    """helm-controller deletes the HelmChart that ``status.helmChart`` names, with rights of its own."""
    return AdmissionPolicy(
        "helmrelease-status",
        [rule(HELM_GROUP, versions, ["helmreleases/status"], [UPDATE])],
        [validation(f"{LOCKS} || {PRODUCER}", "status: written by helm-controller, and by the platform")],
        conditions=(),
        everywhere=True,
    )


def _status_rules(served: Served) -> list[dict[str, object]]:
    """Of the kinds with the same versions one rule."""
    together: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for group, resource in [*((SOURCE_GROUP, plural_of(each)) for each in SOURCES), (IMAGE_GROUP, "imagerepositories")]:
        if versions := served.versions(group, resource):
            together.setdefault((group, versions), []).append(f"{resource}/status")
    return [rule(group, versions, resources, [UPDATE]) for (group, versions), resources in together.items()]
