"""The objects that run Helm for one HelmChart: names and environment are the contract of the usual job image.

For HelmChart ``N`` in namespace ``S``: Secret ``chart-values-N``, ConfigMap ``chart-content-N``, ServiceAccount ``helm-N``,
RoleBinding ``helm-S-N`` in the namespace of the release, and Job ``helm-install-N`` or ``helm-delete-N``.  The image gets values
files in ``/config`` (in the order of their names), the archive as base64 in ``/chart/N.tgz.base64``, what to do as arguments, and
the rest as environment, so that rancher/klipper-helm and our own image (knative/helm-job) can stand for each other.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from itertools import count
from typing import Any

from tenantry import __version__
from tenantry.model.config import Config
from tenantry.model.digest import digest_of
from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    JOB,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    Kind,
    Object,
    annotations_of,
    object_of,
)
from tenantry.model.names import CHART_LABEL, CLUSTER_ADMIN, CONFIG_HASH

IMAGE = f"image.invalid/tenantry/helm-job:{__version__}"
BACK_OFF_LIMIT = 20
"""Further attempts of a run that fails, unless the HelmChart says otherwise: with Kubernetes' pauses of up to ten minutes
between them about two and a half hours."""
DELETE_BACK_OFF_LIMIT = 3
DELETE_DEADLINE_S = 900
"""After this the uninstallation is given up, reported, and the HelmChart deleted; also when nothing lets it begin for so long."""
REPLACEMENT = "Failed"
"""``podReplacementPolicy``: the next pod comes when the last one has ended.  By default it comes as soon as that is asked to end,
and then, at a node drain, two Helms work on one release for as long as the first may go on.  It is no input of the digest:
nothing is run again for it, and a Job that was made without it stays as it is.
"""
GRACE_S = 300
"""How long Helm may go on when its Job is replaced: killed in the middle, it leaves a pending release."""
LABEL_VALUE_LIMIT = 63
_HOME = "/home/klipper-helm"
_COMMAS = re.compile(r"\\*,")


def spec_of(obj: Object | None) -> Object:
    """The spec without its nulls."""
    return {name: value for name, value in ((obj or {}).get("spec") or {}).items() if value is not None}


class Names:
    """What the objects are called that run Helm for a HelmChart."""

    def __init__(self, namespace: str, name: str) -> None:
        self.secret = f"chart-values-{name}"
        """With the values files."""
        self.content = f"chart-content-{name}"
        """The ConfigMap with the archive."""
        self.account = f"helm-{name}"
        """The ServiceAccount that Helm runs under."""
        self.binding = f"helm-{namespace}-{name}"
        """Of that account, in all namespaces or in that of the release."""
        self.install, self.delete = f"helm-install-{name}", f"helm-delete-{name}"
        """The Jobs: one installs and upgrades, the other uninstalls."""

    @property
    def left(self) -> frozenset[str]:
        """Of what can outlive a HelmChart."""
        return frozenset({self.account, self.binding, self.install, self.delete})


def names_of(chart: Object) -> Names:
    """The names for this HelmChart."""
    return Names(chart["metadata"]["namespace"], chart["metadata"]["name"])


def target_namespace(chart: Object) -> str:
    """The namespace of the release."""
    return str(spec_of(chart).get("targetNamespace") or chart["metadata"]["namespace"])


def values_secrets(obj: Object | None) -> list[Object]:
    """The Secrets with further values files that a HelmChart or HelmChartConfig names."""
    return [found for found in spec_of(obj).get("valuesSecrets") or () if found.get("name") and found.get("keys")]


def values_files(chart: Object, further: Object | None) -> dict[str, str]:
    """The files of ``/config``; those of the HelmChartConfig come later, and so win."""
    files: dict[str, str] = {}
    for text, typed, obj in (
        ("values-01_HelmChart.yaml", "values-02_HelmChart-values.yaml", chart),
        ("values-10_HelmChartConfig.yaml", "values-12_HelmChartConfig-values.yaml", further),
    ):
        spec = spec_of(obj)
        if content := spec.get("valuesContent"):
            files[text] = str(content)
        if values := spec.get("values"):
            files[typed] = json.dumps(values, sort_keys=True)
    if authority := spec_of(chart).get("repoCA"):
        files["ca-file.pem"] = str(authority)
    return files


def secret(chart: Object, further: Object | None) -> Object:
    """Secret with the values files."""
    data = {name: base64.b64encode(text.encode()).decode() for name, text in values_files(chart, further).items()}
    return {**_owned(SECRET, names_of(chart).secret, chart), "type": "Opaque", "data": data}


def content(chart: Object) -> Object:
    """ConfigMap with the archive."""
    name, archive = chart["metadata"]["name"], spec_of(chart).get("chartContent")
    return {**_owned(CONFIG_MAP, names_of(chart).content, chart), "data": {f"{name}.tgz.base64": archive} if archive else {}}


def account(chart: Object) -> Object:
    """ServiceAccount; it has no owner, since it must outlive a HelmChart that is being deleted until Helm is done."""
    made = _made(SERVICE_ACCOUNT, names_of(chart).account, chart)
    return {**made, "automountServiceAccountToken": True}


def binding_kind(role: str) -> Kind:
    """Where a ClusterRole is given: in the namespace of the release, ``cluster-admin`` in all of them."""
    return CLUSTER_ROLE_BINDING if role == CLUSTER_ADMIN else ROLE_BINDING


def binding(chart: Object, role: str) -> Object:
    """The binding of the account to a ClusterRole."""
    names, kind = names_of(chart), binding_kind(role)
    place = {"namespace": target_namespace(chart)} if kind is ROLE_BINDING else {}
    metadata = {"name": names.binding, **place, "labels": _labels(chart)}
    subject = {"kind": "ServiceAccount", "name": names.account, "namespace": chart["metadata"]["namespace"]}
    return object_of(kind, metadata, roleRef={"apiGroup": kind.group, "kind": "ClusterRole", "name": role}, subjects=[subject])


def install_job(chart: Object, further: Object | None, secrets: Mapping[str, Object | None], config: Config) -> Object:
    """The Job that installs or upgrades, with the digest of everything that it depends on."""
    spec = spec_of(chart)
    template = _template(chart, further, config, _arguments(spec))
    archive = {"name": "content", "configMap": {"name": names_of(chart).content}}
    template["spec"]["volumes"] += [_values_volume(chart, further), archive]
    container = template["spec"]["containers"][0]
    container["volumeMounts"] += [_mount("values", "/config"), _mount("content", "/chart")]
    back_off_limit = int(spec.get("backOffLimit", BACK_OFF_LIMIT))
    inputs = [
        template,
        back_off_limit,
        values_files(chart, further),
        spec.get("chartContent"),
        _contents_of(chart, further, secrets),
    ]
    digest = digest_of(inputs).hex().upper()
    template["metadata"]["annotations"] = {CONFIG_HASH: f"SHA256={digest}"}
    # Helm writes it on the release as a label; it is not part of the digest.
    container["env"].append({"name": "CONFIG_HASH", "value": digest[:LABEL_VALUE_LIMIT]})
    made = _owned(JOB, names_of(chart).install, chart)
    return {**made, "spec": {"backoffLimit": back_off_limit, "podReplacementPolicy": REPLACEMENT, "template": template}}


def delete_job(chart: Object, config: Config) -> Object:
    """The Job that uninstalls; it has no owner, since it runs while the HelmChart is being deleted."""
    made = _made(JOB, names_of(chart).delete, chart)
    template = _template(chart, None, config, ["delete"])
    limits = {"backoffLimit": DELETE_BACK_OFF_LIMIT, "activeDeadlineSeconds": DELETE_DEADLINE_S}
    return {**made, "spec": {**limits, "podReplacementPolicy": REPLACEMENT, "template": template}}


def target_of(job: Object) -> str:
    """The namespace that a Job works on; empty when it is none of ours."""
    containers = (((job.get("spec") or {}).get("template") or {}).get("spec") or {}).get("containers") or ()
    found = (one.get("value") for each in containers for one in each.get("env") or () if one.get("name") == "TARGET_NAMESPACE")
    return next((str(value) for value in found), "")


def hash_of(job: Object) -> str:
    """The digest that a Job was made with."""
    return annotations_of((job.get("spec") or {}).get("template")).get(CONFIG_HASH, "")


def _labels(chart: Object) -> dict[str, str]:
    return {CHART_LABEL: chart["metadata"]["name"]}


def _made(kind: Kind, name: str, chart: Object) -> Object:
    return object_of(kind, {"name": name, "namespace": chart["metadata"]["namespace"], "labels": _labels(chart)})


def _owned(kind: Kind, name: str, chart: Object) -> Object:
    made, metadata = _made(kind, name, chart), chart["metadata"]
    owner = {"apiVersion": chart["apiVersion"], "kind": chart["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    made["metadata"]["ownerReferences"] = [{**owner, "controller": False, "blockOwnerDeletion": False}]
    return made


def _mount(name: str, path: str) -> Object:
    return {"name": name, "mountPath": path}


def _arguments(spec: Object) -> list[str]:
    arguments = ["install"]
    if namespace := spec.get("targetNamespace"):
        arguments += ["--namespace", namespace]
    if spec.get("createNamespace"):
        arguments.append("--create-namespace")
    if spec.get("takeOwnership"):
        arguments.append("--take-ownership")
    if version := spec.get("version"):
        arguments += ["--version", version]
    for path, value in sorted((spec.get("set") or {}).items()):
        plain = value if isinstance(value, str) else json.dumps(value)
        typed = isinstance(value, int) or plain.lower() in ("true", "false", "null")
        text = plain if typed else _COMMAS.sub(_escaped, plain)
        arguments += ["--set" if typed else "--set-string", f"{path}={text}"]
    return arguments


def _escaped(commas: re.Match[str]) -> str:
    """A comma separates values for Helm, unless an odd number of backslashes stands before it."""
    found = commas.group()
    return found if len(found) % 2 == 0 else "\\" + found


def _environment(chart: Object, further: Object | None) -> list[Object]:
    spec, more, metadata = spec_of(chart), spec_of(further), chart["metadata"]
    named = f"{metadata['name']}/{spec.get('chart', '')}" if spec.get("repo") else str(spec.get("chart", ""))
    values = {
        "NAME": metadata["name"],
        "VERSION": spec.get("version", ""),
        "REPO": spec.get("repo", ""),
        "HELM_DRIVER": spec.get("driver", "secret"),
        "CHART_NAMESPACE": metadata["namespace"],
        "CHART": named,
        "HELM_VERSION": spec.get("helmVersion", ""),
        "TARGET_NAMESPACE": target_namespace(chart),
        "AUTH_PASS_CREDENTIALS": _flag(spec.get("authPassCredentials")),
        "INSECURE_SKIP_TLS_VERIFY": _flag(spec.get("insecureSkipTLSVerify")),
        "PLAIN_HTTP": _flag(spec.get("plainHTTP")),
        "TIMEOUT": spec.get("timeout", ""),
        "FAILURE_POLICY": more.get("failurePolicy") or spec.get("failurePolicy") or "reinstall",
        "SERVER_SIDE": more.get("serverSide") or spec.get("serverSide") or "auto",
        "FORCE_CONFLICTS": _flag(more.get("forceConflicts", spec.get("forceConflicts"))),
    }
    if spec.get("bootstrap"):
        values |= {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "6443", "BOOTSTRAP": "true"}
    return [{"name": name, "value": str(value)} for name, value in values.items()]


def _flag(value: Any) -> str:
    return "true" if value else "false"


def _template(chart: Object, further: Object | None, config: Config, arguments: list[str]) -> Object:
    spec = spec_of(chart)
    image = str(spec.get("jobImage", "")).strip() or config.helm_project_operator.helm_controller.job_image or IMAGE
    scratch = {"tmp": "/tmp", "helm-data": f"{_HOME}/.helm", "helm-cache": f"{_HOME}/.cache", "helm-config": f"{_HOME}/.config"}  # noqa: S108 - in the pod
    container: Object = {
        "name": "helm",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": arguments,
        "env": _environment(chart, further),
        "securityContext": spec.get("securityContext")
        or {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [_mount(name, path) for name, path in scratch.items()],
    }
    pod: Object = {
        "restartPolicy": "Never",
        "serviceAccountName": names_of(chart).account,
        "terminationGracePeriodSeconds": GRACE_S,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "securityContext": spec.get("podSecurityContext") or {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [{"name": name, "emptyDir": {"medium": "Memory"}} for name in scratch],
    }
    _mount_references(spec, pod, container)
    if spec.get("bootstrap"):
        pod["hostNetwork"] = True
        pod["nodeSelector"]["node-role.kubernetes.io/control-plane"] = "true"
        pod["tolerations"] = [{"operator": "Exists"}]
    return {"metadata": {"labels": _labels(chart)}, "spec": pod}


def _mount_references(spec: Object, pod: Object, container: Object) -> None:
    """Credentials for repositories and registries, and certificates of authorities, by reference."""
    if name := (spec.get("authSecret") or {}).get("name"):
        pod["volumes"].append({"name": "auth", "secret": {"secretName": name}})
        container["volumeMounts"].append(_mount("auth", "/auth"))
    if name := (spec.get("dockerRegistrySecret") or {}).get("name"):
        items = [{"key": ".dockerconfigjson", "path": "config.json"}]
        pod["volumes"].append({"name": "dockerconfig", "secret": {"secretName": name, "items": items}})
        container["volumeMounts"].append(_mount("dockerconfig", f"{_HOME}/.docker"))
    if name := (spec.get("repoCAConfigMap") or {}).get("name"):
        pod["volumes"].append({"name": "ca-files", "configMap": {"name": name}})
        container["volumeMounts"].append(_mount("ca-files", "/ca-files"))


def _values_volume(chart: Object, further: Object | None) -> Object:
    sources: list[Object] = [{"secret": {"name": names_of(chart).secret}}]
    for tens, obj in ((0, chart), (1, further)):
        number = count()
        for named in values_secrets(obj):
            items = [{"key": key, "path": f"values-{tens}3_{next(number):03}.yaml"} for key in named["keys"]]
            sources.append({"secret": {"name": named["name"], "items": items, "optional": bool(named.get("ignoreUpdates"))}})
    return {"name": "values", "projected": {"sources": sources}}


def _contents_of(chart: Object, further: Object | None, secrets: Mapping[str, Object | None]) -> list[Any]:
    """What the named Secrets hold, where a change shall run Helm again."""
    named = [found for obj in (chart, further) for found in values_secrets(obj) if not found.get("ignoreUpdates")]
    return [
        [found["name"], ((secrets.get(found["name"]) or {}).get("data") or {}).get(key)]
        for found in named
        for key in found["keys"]
    ]
