"""The image of the Jobs that run Helm: what it is made of agrees with what we pin and name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import manifests

from release_provisioning.jobs.manifest import IMAGE
from tenantry.local.control_plane import HELM
from tenantry.local.jobs import helm_job_program

FOLDER = manifests.ROOT / "knative" / "helm-job"


def test_image_has_the_pinned_helm() -> None:
    """The image is built from the module, and named by the version, that the code knows."""
    text = (FOLDER / "Containerfile").read_text(encoding="utf-8")

    assert f"version.version=v{HELM.version}" in text
    assert f"COPY {HELM.folder.relative_to(manifests.ROOT)}/ ./" in text
    assert "USER 1000" in text
    assert f"JOB_IMAGE := {IMAGE}\n" in (manifests.ROOT / "Makefile").read_text(encoding="utf-8")


def test_program_needs_nothing_but_python(tmp_path: Path) -> None:
    """It runs without any package, and says what it was not told."""
    (tmp_path / "dev").mkdir()
    environment = {"HELM_JOB_ROOT": str(tmp_path), "PATH": os.defpath}
    command = [sys.executable, "-I", "-S", str(helm_job_program()), "dance"]

    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert result.returncode == 1
    assert "the first argument is install or delete" in (tmp_path / "dev" / "termination-log").read_text()


def test_result_does_not_depend_on_the_last_word(tmp_path: Path) -> None:
    """Where the termination log cannot be written, the exit code is what Helm's is, and the log says both."""
    helm = tmp_path / "helm"
    helm.write_text("#!/bin/sh\necho Error: release: not found >&2\nexit 1\n")
    helm.chmod(0o755)
    told = {"NAME": "r", "TARGET_NAMESPACE": "t", "KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}
    account = tmp_path / "var/run/secrets/kubernetes.io/serviceaccount"
    account.mkdir(parents=True)
    (account / "token").write_text("t")
    environment = {"HELM_JOB_ROOT": str(tmp_path), "HELM_JOB_HELM": str(helm), "PATH": os.defpath, **told}
    command = [sys.executable, "-I", "-S", str(helm_job_program()), "delete"]

    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stderr
    assert "release t/r was not installed" in result.stdout + result.stderr
    assert "nobody is told" in result.stdout + result.stderr
