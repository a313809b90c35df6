"""What is shipped is ours, and is listed: image names that nobody else can publish, digests, bills of materials, the audit.

Checks a-60 and a-63.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import manifests
import pytest
import yaml
from cyclonedx.model.bom import Bom
from manifests import Document

import audit
import images
import sbom
from images import JOB, NAMES, PLACEHOLDER, ImageError, by_digest, findings, pin
from locked import IMAGE_LOCK, LOCK, LockError, Package, go_modules, is_allowed, licence_of, packages
from release_provisioning.jobs import manifest
from tenantry.local.control_plane import HELM, Lines, ensure_helm
from tenantry.local.control_plane.catalogue import ALL_MODULES, EXTRA_MODULES
from tenantry.local.control_plane.toolchain import find_go
from tenantry.model.config import Config

ROOT = manifests.ROOT
DIGEST = "sha256:" + "0123456789abcdef" * 4
BUILT = {name: f"registry.example.com/tenantry/{name}@{DIGEST}" for name in NAMES}
NETWORK = "which holes are known is asked of public databases by `make audit`, which needs the network"

REGISTRIES = re.compile(
    r"\b(?:[\w.-]*docker\.io|ghcr\.io|[\w.]*gcr\.io|quay\.io|registry\.k8s\.io|mcr\.microsoft\.com|public\.ecr\.aws"
    r"|registry\.gitlab\.com|registry\.access\.redhat\.com|[\w-]+\.pkg\.dev)/[\w./-]+(?:@sha256:[0-9a-f]{64})?"
)
SHIPPED = ("knative", "triggers", "functions", "shared", "tools")


# -- a-60: nobody else's names -----------------------------------------------------------------------------


def shipped_files() -> list[Path]:
    """The texts that an installation, a build or a running function reads, and the Makefile."""
    found = [path for folder in SHIPPED for path in (ROOT / folder).rglob("*") if path.is_file()]
    texts = [path for path in found if path.suffix in {".py", ".yaml", ".toml"} or path.name == "Containerfile"]
    return [*texts, ROOT / "Makefile", ROOT / "docs/examples/tenantry.yaml"]


@pytest.mark.check("a-60")
def test_no_file_names_an_image_that_somebody_else_could_publish() -> None:
    """No manifest, Containerfile, program or default names an image of a public registry, but for Knative's adapter by digest."""
    files = shipped_files()
    named = {(path.name, each) for path in files for each in REGISTRIES.findall(path.read_text(encoding="utf-8"))}

    assert len(files) > 200
    assert {each.partition("@")[0] for _, each in named} == {
        "gcr.io/knative-releases/knative.dev/eventing/cmd/apiserver_receive_adapter"
    }
    assert all(by_digest(each, name) for name, each in named)


@pytest.mark.check("a-60", without="images-by-digest")
def test_every_image_is_a_placeholder_or_named_by_digest(documents: list[Document]) -> None:
    """Each container of each manifest names what nobody can publish, or one certain image; so does the default of Helm's Jobs."""
    found = [c["image"] for _, template in manifests.pod_templates(documents) for c in template["spec"]["containers"]]

    assert found
    for image in found:
        assert image.startswith(PLACEHOLDER) or by_digest(image, "manifest"), image
    assert manifest.IMAGE.startswith(PLACEHOLDER)
    assert PLACEHOLDER.partition("/")[0].endswith(".invalid")


@pytest.mark.check("a-60")
@pytest.mark.parametrize("way", manifests.WAYS)
def test_what_was_built_is_installed_by_digest(way: str, kustomize: list[str], tmp_path: Path) -> None:
    """Pinned, each way to install names every image by digest, Helm's in the configuration; not pinned, each is told."""
    told = findings(each.body for each in manifests.render(ROOT / way, kustomize))
    pin(BUILT, tmp_path / "deploy", base=ROOT / way, config=ROOT / "knative/config/tenantry.yaml")
    rendered = subprocess.run([*kustomize, str(tmp_path / "deploy")], capture_output=True, text=True, check=True).stdout
    bodies = list(yaml.safe_load_all(rendered))

    assert len(told) >= len(manifests.functions()) + 1
    assert any("jobImage is empty" in line for line in told)
    assert findings(bodies) == []
    named = {image for body in bodies for image in images._images(body) if image.startswith("registry.example.com/")}
    assert named == {BUILT[name] for name in NAMES if name != JOB}
    (config,) = [each for each in bodies if each["kind"] == "ConfigMap"]
    assert config["metadata"]["labels"] == {"app.kubernetes.io/part-of": "tenantry"}
    settings = Config.model_validate(yaml.safe_load(config["data"]["tenantry.yaml"]))
    (fence,) = [each for each in bodies if each["metadata"]["name"] == "tenantry-fence" and "matchConditions" in each["spec"]]
    assert BUILT[JOB] in fence["spec"]["matchConditions"][0]["expression"]
    chart = {"apiVersion": "helm.cattle.io/v1", "kind": "HelmChart", "metadata": {"name": "a", "namespace": "b", "uid": "1"}}
    job = manifest.install_job(chart, None, {}, settings)
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == BUILT[JOB]


@pytest.mark.check("a-60")
@pytest.mark.parametrize(
    ("change", "word"),
    [
        (
            {"helm-job": "registry.example.com/helm-job:0.1.0"},
            "helm-job: registry.example.com/helm-job:0.1.0 is not named by digest",
        ),
        ({"helm-job": ""}, "helm-job: nothing is not named by digest"),
        ({"shop": f"registry.example.com/shop@{DIGEST}"}, "shop: not an image of ours; there are lock-enforcement"),
    ],
)
def test_pinning_takes_digests_only(change: dict[str, str], word: str, tmp_path: Path) -> None:
    """A tag, nothing, and a name that is none of ours are refused with the name, and nothing is written."""
    where = {"base": ROOT / "knative", "config": ROOT / "knative/config/tenantry.yaml"}
    with pytest.raises(ImageError, match=re.escape(word)):
        pin(BUILT | change, tmp_path / "deploy", **where)
    with pytest.raises(ImageError, match="no image for helm-job"):
        pin({k: v for k, v in BUILT.items() if k != JOB}, tmp_path, **where)
    assert not (tmp_path / "deploy").exists()


BUILDER = """\
#!/bin/sh
echo "$@" >> {log}
if [ "$1" = push ]; then printf %s {digest} > "$3"; fi
"""


@pytest.fixture
def builder(tmp_path: Path) -> tuple[Path, Path]:
    """A program in place of buildah, which is not on every machine: it writes down its arguments, and a digest after a push."""
    program, log = tmp_path / "builder", tmp_path / "log"
    program.write_text(BUILDER.format(log=log, digest=DIGEST), encoding="utf-8")
    program.chmod(0o755)
    return program, log


@pytest.mark.check("a-60")
def test_what_the_registry_got_is_what_is_pinned(builder: tuple[Path, Path], tmp_path: Path) -> None:
    """All six images are built from the given bases and pushed, and the digests of the pushes are in the installation."""
    program, log = builder
    command = [sys.executable, str(ROOT / "tools/images.py"), "build", "--registry", "registry.example.com/tenantry"]
    bases = ["--python-image", f"registry.example.com/python@{DIGEST}", "--go-image", "localhost/golang"]
    into = ["--program", str(program), "--into", str(tmp_path / "deploy"), "--", "--isolation", "chroot"]
    done = subprocess.run([*command, *bases, *into], capture_output=True, text=True, check=False)
    calls = log.read_text(encoding="utf-8").splitlines()
    builds, pushes = ([call for call in calls if call.startswith(verb)] for verb in ("build ", "push "))

    assert done.returncode == 0, done.stderr
    assert len(builds) == len(pushes) == len(NAMES)
    for name, call in zip(NAMES, builds, strict=True):
        assert "--isolation chroot" in call
        assert f"--build-arg PYTHON_IMAGE=registry.example.com/python@{DIGEST}" in call
        assert ("GO_IMAGE=localhost/golang" in call) is (name == JOB)
        assert (f"FUNCTION={name} " in call) is (name != JOB)
    written = yaml.safe_load((tmp_path / "deploy/kustomization.yaml").read_text(encoding="utf-8"))
    assert {each["digest"] for each in written["images"]} == {DIGEST}


@pytest.mark.check("a-60")
@pytest.mark.parametrize("base", ["", "docker.io/library/python:3.13-slim", "python", f"python:3@{DIGEST[:-1]}"])
def test_nothing_is_built_on_a_base_that_can_change(base: str, builder: tuple[Path, Path]) -> None:
    """A base without a digest is refused before anything is built."""
    program, log = builder
    command = [sys.executable, str(ROOT / "tools/images.py"), "build", "--registry", "r.example.com/t", "--program", str(program)]
    done = subprocess.run([*command, "--python-image", base, "--go-image", base], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (2, "")
    assert "is not named by digest" in done.stderr
    assert not log.exists()


# -- a-63: what is in it -----------------------------------------------------------------------------------


def listed(bom: Bom, kind: str) -> set[tuple[str, str, tuple[str, ...]]]:
    """Name, version and hashes or checksums of the components whose purl is of this kind."""
    found = set()
    for each in bom.components:
        if each.purl is not None and each.purl.type == kind:
            sums = [hashed.content for hashed in each.hashes] + [
                p.value or "" for p in each.properties if p.name == "tenantry:go.sum"
            ]
            name = f"{each.group}/{each.name}" if each.group else each.name
            found.add((name, each.version or "", tuple(sorted(sums))))
    return found


def python(*locks: Path) -> set[tuple[str, str, tuple[str, ...]]]:
    return {(each.name.lower(), each.version, tuple(sorted(each.hashes))) for lock in locks for each in packages(lock)}


def go(*folders: Path) -> set[tuple[str, str, tuple[str, ...]]]:
    return {(each.path, each.version, (each.checksum,)) for folder in folders for each in go_modules(folder)}


@pytest.mark.check("a-63")
def test_bills_of_materials_list_exactly_what_is_locked(tmp_path: Path) -> None:
    """Wheel, function's image: the image's lock; Helm's image: Helm's modules; development: all. Each file is read back."""
    bases = {"python_image": f"registry.example.com/python@{DIGEST}", "go_image": f"registry.example.com/golang@{DIGEST}"}
    files = sbom.write(tmp_path, sbom.boms(**bases))
    read = {file.name.removesuffix(".cdx.json").removeprefix("tenantry-"): json.loads(file.read_text()) for file in files}
    found = {name: Bom.from_json(text) for name, text in read.items()}  # type: ignore[attr-defined]
    ours = {("tenantry", sbom.project().version or "", ())}
    modules = [module.folder for module in (*ALL_MODULES, *EXTRA_MODULES)]

    assert {text["specVersion"] for text in read.values()} == {"1.6"}
    assert listed(found["wheel"], "pypi") == python(IMAGE_LOCK)
    assert listed(found["image-function"], "pypi") == python(IMAGE_LOCK) | ours
    assert listed(found["image-helm-job"], "golang") == go(HELM.folder)
    assert listed(found["development"], "pypi") == python(LOCK)
    assert listed(found["development"], "golang") == go(*modules)
    for name, used in {"image-function": 1, "image-helm-job": 2}.items():
        named = {each.version for each in found[name].components if each.type.value == "container"}
        assert named == {DIGEST}
        assert sum(each.type.value == "container" for each in found[name].components) == used


@pytest.mark.check("a-63")
def test_helm_is_built_of_what_is_listed() -> None:
    """Each module that the built Helm says it was made of is in the list of its image, with the same checksum."""
    command = [find_go().path, "version", "-m", ensure_helm(Lines())]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.split("\t") for line in told.splitlines() if line.startswith("\tdep\t")]
    made = {(line[2], line[3], (line[4],)) for line in lines if len(line) > 4}

    assert len(made) > 50
    assert made <= listed(sbom.boms()["image-helm-job"], "golang")


@pytest.mark.check("a-63", without="hashes-of-packages")
def test_every_package_has_hashes_and_a_licence_that_is_allowed() -> None:
    """Each locked package has a hash for each file and a licence that its users may have; others are seen."""
    found = packages(LOCK)

    assert len(found) > 90
    assert {each.name for each in found if not each.hashes} == set()
    assert {each.name: licence_of(each) for each in found if not is_allowed(licence_of(each))} == {}
    assert not any(map(is_allowed, ("", "GPL-3.0-only", "MIT AND AGPL-3.0-only", "SSPL-1.0 OR BUSL-1.1")))
    assert all(map(is_allowed, ("MIT", "GPL-2.0-only OR MIT", "Apache-2.0 AND (MIT OR GPL-3.0-only)")))
    assert licence_of(Package("no-such-package", "1", "", ())) == ""


@pytest.mark.parametrize("line", ["shop==1.0", "shop>=1.0 --hash=sha256:0", "shop @ https://example.com/shop.whl", "-e ."])
def test_what_is_not_pinned_by_hash_is_no_lock(line: str, tmp_path: Path) -> None:
    """A package without a hash, without a version or from an address is refused with file and name."""
    (tmp_path / "requirements.lock").write_text(line + "\n", encoding="utf-8")

    with pytest.raises(LockError, match=r"requirements\.lock"):
        packages(tmp_path / "requirements.lock")


def test_the_same_input_gives_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the time given two runs write the same bytes."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    first, second = (sbom.write(tmp_path / name, sbom.boms()) for name in ("a", "b"))

    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]
    assert "2023-11-14T22:13:20" in first[0].read_text(encoding="utf-8")


@pytest.mark.check("a-63", open=NETWORK)
def test_the_audit_asks_about_everything_that_is_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks about the whole lock by hash and each built program; one finding, or a silent database, makes it fail."""
    ensure_helm(Lines())
    first, *others = audit.commands()

    assert first[1:3] == ["-m", "pip_audit"]
    assert first[-1] == str(LOCK)
    assert "--require-hashes" in first
    assert {"helm", "etcd", "kube-apiserver", "kube-controller-manager"} <= {Path(command[-1]).name for command in others}
    assert all(audit.GOVULNCHECK in command for command in others)
    for results, code in (((0, 0), 0), ((1, 0), 1), ((0, 3), 1)):
        made = [[sys.executable, "-c", f"raise SystemExit({result})"] for result in results]
        monkeypatch.setattr(audit, "commands", lambda made=made: made)
        assert audit.main() == code


def test_the_verbs_are_there() -> None:
    """`make` has them, and they run the tools."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")

    for verb, tool in {"images": "images.py build", "sbom": "sbom.py", "audit": "audit.py"}.items():
        (recipe,) = re.findall(rf"^{verb}: setup ##.*\n((?:\t.*\n)+)", text, re.MULTILINE)
        assert f"tools/{tool}" in recipe
