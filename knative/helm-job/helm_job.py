#!/usr/bin/env python3
"""Runs Helm once for a HelmChart: the program in the image of the Jobs that release-provisioning makes.

Only the standard library.  The contract is that of the usual job image, so that either can be named:

    helm-job install [arguments for `helm install` and `helm upgrade`]
    helm-job delete

Environment: NAME (of the release), CHART, VERSION, REPO, TARGET_NAMESPACE, CHART_NAMESPACE, HELM_DRIVER, HELM_VERSION, TIMEOUT,
FAILURE_POLICY (abort, reinstall, retry), CONFIG_HASH (becomes a label of the release), AUTH_PASS_CREDENTIALS,
INSECURE_SKIP_TLS_VERIFY, PLAIN_HTTP, SERVER_SIDE and FORCE_CONFLICTS (Helm 4).  Files: values in /config/*.yaml in the order of
their names, the archive as base64 in /chart/NAME.tgz.base64, credentials in /auth, authorities in /config/ca-file.pem and
/ca-files.  The last words of Helm go to /dev/termination-log; the exit code is 0 only when the release is as asked for.

HELM_JOB_ROOT puts another folder in place of / (for a machine without containers), HELM_JOB_HELM names the Helm program.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import signal
import ssl
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(os.environ.get("HELM_JOB_ROOT", "/"))
HELM = os.environ.get("HELM_JOB_HELM", "helm")
ACCOUNT = ROOT / "var/run/secrets/kubernetes.io/serviceaccount"
CONFIG_HASH = "helmcharts.helm.cattle.io/configHash"
INTERRUPTED = ("pending-install", "pending-upgrade", "pending-rollback", "superseded", "uninstalling")
STAYED = "Failed to delete release: "
MESSAGE_LIMIT = 2000  # the kubelet keeps 4096 bytes


class JobError(Exception):
    """The release cannot be made as asked for; the text is for people."""


@dataclass(frozen=True)
class Release:
    """The newest revision of the release."""

    status: str
    revision: int


def setting(name: str) -> str:
    """An environment variable, empty when it is not set."""
    return os.environ.get(name, "").strip()


def say(text: str) -> None:
    """A line for the log of the pod."""
    print(text, flush=True)  # noqa: T201 - the log is what this program has to say


# -- Helm --------------------------------------------------------------------------------------------------


def helm(*arguments: str, stdin: str | None = None) -> None:
    """Run Helm, and show what it says.

    Raises:
        JobError: with Helm's own words.
    """
    say(f"helm {' '.join(arguments[:3])}")  # what follows may hold values that are secret
    result = subprocess.run([HELM, *arguments], input=stdin, capture_output=True, text=True, check=False)
    say((result.stdout + result.stderr).rstrip())
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if line.strip() and not line.startswith("WARNING")]
        if "--debug" in arguments:  # between what Helm says stand its own call stack and, once, why objects stayed
            why = [line[line.index(STAYED) :] for line in lines if STAYED in line]
            lines = [*(line for line in lines if line.startswith("Error: ")), *why]
        raise JobError(" ".join(lines[-5:]).removeprefix("Error: ") or f"helm ended with code {result.returncode}")


def find_release(name: str, namespace: str) -> Release | None:
    """The release as Helm knows it; None when it does not.

    Raises:
        JobError: Helm cannot tell.
    """
    command = [HELM, "status", name, "--namespace", namespace, "--output", "json"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        if "release: not found" in result.stderr:
            return None
        raise JobError(result.stderr.strip().removeprefix("Error: "))
    found = json.loads(result.stdout)
    return Release(str(found["info"]["status"]), int(found["version"]))


def options(arguments: list[str], *, new: bool) -> list[str]:
    """What both `helm install` and `helm upgrade` are given."""
    made = list(arguments)
    if "--namespace" not in made:
        made += ["--namespace", setting("TARGET_NAMESPACE")]
    for file in sorted((ROOT / "config").glob("*.yaml")):
        made += ["--values", str(file)]
    if timeout := setting("TIMEOUT"):
        made += ["--timeout", timeout]
    if digest := setting("CONFIG_HASH"):
        made += ["--labels", f"{CONFIG_HASH}={digest}"]
    if setting("PLAIN_HTTP") == "true":
        made.append("--plain-http")
    return made + tls_options() + server_side(new=new)


def tls_options() -> list[str]:
    """How to trust the server that charts come from."""
    made = ["--insecure-skip-tls-verify"] if setting("INSECURE_SKIP_TLS_VERIFY") == "true" else []
    authorities = [ROOT / "config/ca-file.pem", *sorted((ROOT / "ca-files").glob("[!.]*"))]
    present = [file.read_text() for file in authorities if file.is_file()]
    if present:
        bundle = ROOT / "tmp/ca-file.pem"
        bundle.write_text("\n".join(present))
        made += ["--ca-file", str(bundle)]
    return made


def server_side(*, new: bool) -> list[str]:
    """Server-side apply, which Helm has from its version 4 on."""
    version = subprocess.run([HELM, "version", "--short"], capture_output=True, text=True, check=False).stdout
    wanted = setting("SERVER_SIDE")
    if not wanted or version.startswith("v3"):
        return []
    wanted = "true" if new and wanted == "auto" else wanted
    force = setting("FORCE_CONFLICTS") == "true" and wanted == "true"
    return [f"--server-side={wanted}", *(["--force-conflicts"] if force else [])]


def chart_reference() -> str:
    """Where the chart is: the archive that came along, an address, or a name in the repository, which is added."""
    name, chart = setting("NAME"), setting("CHART")
    encoded = ROOT / f"chart/{name}.tgz.base64"
    if encoded.is_file():
        archive = ROOT / f"tmp/{name}.tgz"
        try:
            archive.write_bytes(base64.b64decode(encoded.read_text()))
        except ValueError as error:
            raise JobError(f"spec.chartContent is not base64: {error}") from error
        return str(archive)
    host, port = setting("KUBERNETES_SERVICE_HOST"), setting("KUBERNETES_SERVICE_PORT")
    chart = chart.replace("%{KUBERNETES_API}%", f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    if (repository := setting("REPO")) and "://" not in chart:
        add_repository(chart.partition("/")[0], repository)
    return chart


def add_repository(name: str, address: str) -> None:
    """Make a chart repository known, with the credentials of /auth."""
    command = ["repo", "add", "--force-update", *tls_options(), name, address]
    auth = ROOT / "auth"
    password = None
    if (auth / "username").is_file() and (auth / "password").is_file():
        command += ["--username", (auth / "username").read_text(), "--password-stdin"]
        password = (auth / "password").read_text()
    elif (auth / "tls.crt").is_file() and (auth / "tls.key").is_file():
        command += ["--cert-file", str(auth / "tls.crt"), "--key-file", str(auth / "tls.key")]
    if setting("AUTH_PASS_CREDENTIALS") == "true" and len(command) > 5:
        command.append("--pass-credentials")
    helm(*command, stdin=password)


# -- the record of an interrupted run ----------------------------------------------------------------------


def request(method: str, path: str, body: Any = None) -> Any:
    """One request to the API server under the account of this pod."""
    host, port = setting("KUBERNETES_SERVICE_HOST"), setting("KUBERNETES_SERVICE_PORT")
    address = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    headers = {"Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(address + path, data=data, headers=headers, method=method)  # noqa: S310 - always https
    trust = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    with urllib.request.urlopen(asked, context=trust, timeout=30) as answer:  # noqa: S310
        return json.load(answer)


def mark_failed(name: str, namespace: str, release: Release) -> None:
    """Turn the record of a run that was interrupted into that of one that failed: Helm refuses to go on before.

    Only one Job runs for a release at any time, so nobody is still at it.
    """
    secrets = setting("HELM_DRIVER") in ("", "secret", "secrets")
    collection = "secrets" if secrets else "configmaps"
    path = f"/api/v1/namespaces/{namespace}/{collection}/sh.helm.release.v1.{name}.v{release.revision}"
    record = request("GET", path)
    encoded = record["data"]["release"]
    packed = base64.b64decode(base64.b64decode(encoded) if secrets else encoded)
    content = json.loads(gzip.decompress(packed) if packed.startswith(b"\x1f\x8b") else packed)
    content["info"] |= {"status": "failed", "description": f"interrupted while {release.status}"}
    packed = base64.b64encode(gzip.compress(json.dumps(content).encode()))
    record["data"]["release"] = base64.b64encode(packed).decode() if secrets else packed.decode()
    record["metadata"]["labels"]["status"] = "failed"
    request("PUT", path, record)
    say(f"revision {release.revision} was left {release.status} by an interrupted run and is marked failed")


# -- what is asked for -------------------------------------------------------------------------------------


def uninstall(name: str, namespace: str) -> None:
    """Take the release away, with its objects."""
    timeout = setting("TIMEOUT")
    helm("uninstall", name, "--namespace", namespace, "--wait", "--debug", *(["--timeout", timeout] if timeout else []))


def install(arguments: list[str]) -> str:
    """Install or upgrade, whatever state the release is in; the text says what was done."""
    name, namespace = setting("NAME"), setting("TARGET_NAMESPACE")
    policy = setting("FAILURE_POLICY") or "reinstall"
    if policy not in ("abort", "reinstall", "retry"):
        raise JobError(f"spec.failurePolicy is {policy!r}: it is one of abort, reinstall, retry")
    release = find_release(name, namespace)
    chart = chart_reference()
    if release is None:
        helm("install", name, chart, *options(arguments, new=True))
        return "installed"
    status = release.status
    if status in INTERRUPTED:
        mark_failed(name, namespace, release)
        status = "deployed" if status in ("pending-upgrade", "superseded") else "failed"
    if status == "deployed" or policy == "retry":
        helm("upgrade", name, chart, *options(arguments, new=False))
        return "upgraded"
    if policy == "abort":
        raise JobError(
            f"revision {release.revision} is {release.status} and the failure policy is abort: put the release right by hand "
            f"(helm rollback {name} --namespace {namespace}), or set spec.failurePolicy to reinstall or retry"
        )
    uninstall(name, namespace)
    helm("install", name, chart, *options(arguments, new=True))
    return "installed again"


def delete() -> str:
    """Uninstall; a release that is not there is uninstalled."""
    name, namespace = setting("NAME"), setting("TARGET_NAMESPACE")
    if find_release(name, namespace) is None:
        return "was not installed"
    uninstall(name, namespace)
    return "uninstalled"


def use_account() -> None:
    """Let Helm use the account of this pod where it is not mounted at the usual place."""
    if "HELM_JOB_ROOT" in os.environ:
        os.environ["HELM_KUBEAPISERVER"] = f"https://{setting('KUBERNETES_SERVICE_HOST')}:{setting('KUBERNETES_SERVICE_PORT')}"
        os.environ["HELM_KUBECAFILE"] = str(ACCOUNT / "ca.crt")
        os.environ["HELM_KUBETOKEN"] = (ACCOUNT / "token").read_text()


def leave_word(text: str) -> None:
    """Write what the pod's status shows.  What Helm did counts, also where nothing can be written."""
    try:
        (ROOT / "dev/termination-log").write_text(text)
    except OSError as error:
        say(f"nobody is told: {error}")


def main(arguments: list[str]) -> int:
    """Do what the arguments ask for."""
    # Helm killed in the middle leaves a pending release: whoever wants this to end gives it the time to.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: say("asked to end: Helm finishes first"))
    try:
        if arguments[:1] not in (["install"], ["delete"]):
            raise JobError(f"cannot {' '.join(arguments) or 'do nothing'}: the first argument is install or delete")
        if setting("HELM_VERSION") not in ("", "v3"):
            raise JobError(f"spec.helmVersion is {setting('HELM_VERSION')!r}: only v3 is supported")
        use_account()
        done = install(arguments[1:]) if arguments[0] == "install" else delete()
    except (JobError, OSError) as error:
        say(f"failed: {error}")
        leave_word(str(error)[-MESSAGE_LIMIT:])
        return 1
    say(f"release {setting('TARGET_NAMESPACE')}/{setting('NAME')} {done}")
    leave_word(done)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
