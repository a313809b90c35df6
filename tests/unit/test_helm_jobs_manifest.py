"""The Job keeps the contract of the usual image, and its digest says when Helm runs again."""

from __future__ import annotations

from typing import Any

import pytest
from chart_objects import ARCHIVE, SYSTEM, chart, config, further, settled, writes

from release_provisioning.jobs import manifest
from tenantry.model.kinds import Object


def environment(job: Object) -> dict[str, str]:
    return {one["name"]: one["value"] for one in job["spec"]["template"]["spec"]["containers"][0]["env"]}


def test_job_keeps_the_contract_of_the_usual_image() -> None:
    """Arguments, environment and files are those that either job image expects."""
    of = chart(
        targetNamespace="there",
        createNamespace=True,
        takeOwnership=True,
        repo="https://charts.example",
        version="1.2.3",
        set={"a": 1, "b": "true", "c": "x,y", "d": "x\\,y", "e": None, "f": True},
        timeout="90s",
        values={"k": 1},
        valuesContent="a: 1",
        repoCA="PEM",
        authPassCredentials=True,
    )
    job = manifest.install_job(of, further(failurePolicy="abort", valuesContent="b: 2", forceConflicts=True), {}, config())
    container = job["spec"]["template"]["spec"]["containers"][0]

    assert container["args"] == [
        "install", "--namespace", "there", "--create-namespace", "--take-ownership", "--version", "1.2.3",
        "--set", "a=1", "--set", "b=true", "--set-string", "c=x\\,y", "--set-string", "d=x\\,y",
        "--set", "e=null", "--set", "f=true",
    ]  # fmt: skip
    found = environment(job)
    assert found.pop("CONFIG_HASH")
    assert found == {
        "NAME": "demo",
        "VERSION": "1.2.3",
        "REPO": "https://charts.example",
        "HELM_DRIVER": "secret",
        "CHART_NAMESPACE": SYSTEM,
        "CHART": "demo/tiny",
        "HELM_VERSION": "",
        "TARGET_NAMESPACE": "there",
        "AUTH_PASS_CREDENTIALS": "true",
        "INSECURE_SKIP_TLS_VERIFY": "false",
        "PLAIN_HTTP": "false",
        "TIMEOUT": "90s",
        "FAILURE_POLICY": "abort",
        "SERVER_SIDE": "auto",
        "FORCE_CONFLICTS": "true",
    }
    assert list(manifest.values_files(of, further(valuesContent="b: 2", values={"z": 0}))) == [
        "values-01_HelmChart.yaml",
        "values-02_HelmChart-values.yaml",
        "values-10_HelmChartConfig.yaml",
        "values-12_HelmChartConfig-values.yaml",
        "ca-file.pem",
    ]


def test_job_mounts_what_the_chart_refers_to() -> None:
    """Credentials, authorities and values of other Secrets are mounted by reference."""
    of = chart(
        authSecret={"name": "auth"},
        dockerRegistrySecret={"name": "registry"},
        repoCAConfigMap={"name": "authorities"},
        valuesSecrets=[
            {"name": "more", "keys": ["a", "b"]},
            {"name": "still", "keys": ["c"], "ignoreUpdates": True},
            {"name": "no"},
        ],
        bootstrap=True,
    )
    pod = manifest.install_job(of, None, {}, config())["spec"]["template"]["spec"]
    mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}

    assert {"auth": "/auth", "ca-files": "/ca-files", "values": "/config", "content": "/chart"}.items() <= mounts.items()
    assert mounts["dockerconfig"] == "/home/klipper-helm/.docker"
    assert [source["secret"]["name"] for source in volumes["values"]["projected"]["sources"]] == [
        "chart-values-demo",
        "more",
        "still",
    ]
    assert pod["hostNetwork"] is True


@pytest.mark.parametrize(
    "change",
    [
        {"valuesContent": "a: 1"},
        {"chartContent": ARCHIVE},
        {"version": "2"},
        {"backOffLimit": 3},
        {"jobImage": "mine"},
        {"set": {"a": 1}},
    ],
)
def test_whatever_a_run_depends_on_is_in_its_digest(change: dict[str, Any]) -> None:
    """A changed chart, value, image or limit replaces the Job."""
    of = settled(chart())
    other = settled(chart(**change), install=of.install)

    assert "delete Job helm-install-demo" in writes(other)


def test_secrets_with_values_are_in_the_digest_unless_they_are_ignored() -> None:
    """A changed Secret runs Helm again, unless its updates are to be ignored."""

    def digest(value: str, **more: Any) -> str:
        of = chart(valuesSecrets=[{"name": "more", "keys": ["a"], **more}])
        return manifest.hash_of(manifest.install_job(of, None, {"more": {"data": {"a": value}}}, config()))

    assert digest("MQ==") != digest("Mg==")
    assert digest("MQ==", ignoreUpdates=True) == digest("Mg==", ignoreUpdates=True)
