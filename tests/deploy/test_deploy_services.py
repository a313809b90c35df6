"""What runs: services that only the broker reaches, and pods that fit the restricted profile."""

from __future__ import annotations

from pathlib import Path

from manifests import Document, pod_templates, serving

RESTRICTED = {
    "runAsNonRoot": True,
    "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
# What Knative Serving 1.23 takes without a feature flag, as far as we use it.
PLAIN_POD_FIELDS = {
    "serviceAccountName", "containerConcurrency", "timeoutSeconds", "enableServiceLinks", "containers", "volumes",
}  # fmt: skip
PLAIN_VOLUMES = {"configMap", "secret", "projected", "emptyDir"}


def test_services_are_cluster_local(documents: list[Document]) -> None:
    """No service gets a public address."""
    assert serving(documents)
    for service in serving(documents):
        assert service.body["metadata"]["labels"]["networking.knative.dev/visibility"] == "cluster-local", str(service)
    for service in documents:
        if service.api_version == "v1" and service.kind == "Service":
            assert service.spec["type"] == "ClusterIP", str(service)


def test_services_scale_to_zero_within_bounds(documents: list[Document]) -> None:
    """A service has no instance while nothing happens, and bounds on how many it gets and what one takes at a time."""
    for service in serving(documents):
        annotations = service.spec["template"]["metadata"]["annotations"]
        spec = service.spec["template"]["spec"]

        assert annotations["autoscaling.knative.dev/min-scale"] == "0"
        assert int(annotations["autoscaling.knative.dev/max-scale"]) > 0
        assert spec["containerConcurrency"] > 0
        assert 0 < spec["timeoutSeconds"] <= 600


def test_services_need_no_feature_flag(documents: list[Document]) -> None:
    """A service uses only what a stock installation of Knative Serving accepts."""
    for service in serving(documents):
        spec = service.spec["template"]["spec"]

        assert spec.keys() <= PLAIN_POD_FIELDS, str(service)
        for volume in spec["volumes"]:
            assert volume.keys() - {"name"} <= PLAIN_VOLUMES, f"{service}: {volume}"
        readiness = spec["containers"][0]["readinessProbe"]
        assert readiness.get("periodSeconds") or not {"timeoutSeconds", "failureThreshold"} & readiness.keys()
        for variable in spec["containers"][0]["env"]:
            assert "fieldRef" not in variable.get("valueFrom", {}), f"{service}: {variable}"
            assert variable["name"] not in {"PORT", "K_SERVICE", "K_CONFIGURATION", "K_REVISION"}


def test_every_container_is_restricted(documents: list[Document]) -> None:
    """Every container runs without root, privileges or a writable root, with bounded memory and unbounded CPU."""
    assert pod_templates(documents)
    for name, template in pod_templates(documents):
        for container in template["spec"]["containers"]:
            resources = container["resources"]

            assert container["securityContext"] == RESTRICTED, name
            assert resources["requests"].keys() == {"cpu", "memory"}, name
            assert resources["limits"].keys() == {"memory"}, name
        assert not template["spec"].get("hostNetwork"), name
        assert template["spec"]["enableServiceLinks"] is False, name


def test_functions_have_health_configuration_and_a_place_for_temporary_files(documents: list[Document]) -> None:
    """A function is probed on its own routes, reads its configuration from a mount and writes to nothing but /tmp."""
    for name, template in pod_templates(documents):
        container = template["spec"]["containers"][0]
        if container["name"] != "function":
            continue
        mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in template["spec"]["volumes"]}
        env = {variable["name"]: variable["value"] for variable in container["env"]}

        assert container["readinessProbe"]["httpGet"]["path"] == "/health/readiness", name
        assert container["livenessProbe"]["httpGet"]["path"] == "/health/liveness", name
        assert Path(env["TENANTRY_CONFIG"]).parent == Path(mounts["config"]["mountPath"]), name
        assert volumes["config"]["configMap"]["name"] == "tenantry-config"
        assert mounts["config"]["readOnly"] is True
        assert mounts["tmp"]["mountPath"] == "/tmp"
        assert volumes["tmp"].keys() == {"name", "emptyDir"}


def test_the_configuration_is_the_file_that_the_functions_read(installed: list[Document]) -> None:
    """The key of the ConfigMap is the file name that TENANTRY_CONFIG names."""
    (config,) = [d for d in installed if d.kind == "ConfigMap"]
    (container,) = serving(installed)[0].spec["template"]["spec"]["containers"]
    env = {variable["name"]: variable["value"] for variable in container["env"]}

    assert list(config.body["data"]) == [Path(env["TENANTRY_CONFIG"]).name]


def test_namespace_refuses_what_is_not_restricted(installed: list[Document]) -> None:
    """The namespace enforces the restricted pod security standard."""
    (namespace,) = [d for d in installed if d.kind == "Namespace" and d.name == "tenantry-system"]

    assert namespace.body["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_dead_letters_are_served_by_the_image_of_a_function(documents: list[Document]) -> None:
    """The sink of dead letters runs what every image holds, under an identity of its own, and needs no configuration."""
    sinks = [(name, pod) for name, pod in pod_templates(documents) if pod["spec"].get("serviceAccountName") == "dead-letters"]

    assert len(sinks) == 2, "a Knative Service, and a Deployment"
    for name, pod in sinks:
        (container,) = pod["spec"]["containers"]
        env = {variable["name"]: variable["value"] for variable in container["env"]}
        assert env["FUNCTION"] == "dead-letters", name
        assert "command" not in container, name
        assert [volume.keys() for volume in pod["spec"]["volumes"]] == [{"name", "emptyDir"}], name
