"""Builds our images, and writes what was built into an installation, by digest.

    python tools/images.py build --registry REGISTRY --python-image REF --go-image REF [--into FOLDER] [-- OPTION ...]
    python tools/images.py pin [--into FOLDER] [--base FOLDER] [--config FILE] NAME=IMAGE@sha256:DIGEST ...
    python tools/images.py check [FILE ...]

`build` makes all images with buildah (--program podman: with podman), pushes them, and pins what the registry says it got; what
follows `--` goes to each build.  `pin` writes a kustomization over knative/ (--base: over one of its overlays) in which each of
our images is named by digest, and the configuration with it.  `check` reads rendered manifests (`kubectl kustomize FOLDER`) and
names every image in them that is a placeholder, or that its registry could replace.

The manifests themselves name ``image.invalid/...``: nobody can ever publish there (RFC 6761), so that what was not pinned does
not start, instead of starting what somebody else has put under that name.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from tenantry import __version__
from tenantry.local.fences import all_policies
from tenantry.model.config import Config
from tenantry.serving.installed import descriptors

ROOT = Path(__file__).resolve().parents[1]
PLACEHOLDER = "image.invalid/tenantry/"
JOB = "helm-job"
NAMES = (*descriptors(), JOB)
_DIGEST = re.compile(r"[a-z0-9][\w.:/-]*@sha256:[0-9a-f]{64}")
_HERE = "localhost/"
_HEAD = "# Written by tools/images.py: what was built, by digest.\n"


class ImageError(ValueError):
    """An image is not named as it has to be; the text says which, and what to do."""


def by_digest(reference: str, what: str, *, local: bool = False) -> str:
    """The reference, if it names a digest; ``local``: or an image that was made on this machine.

    Raises:
        ImageError: it names a tag, which its registry can move.
    """
    if _DIGEST.fullmatch(reference) or (local and reference.startswith(_HERE)):
        return reference
    raise ImageError(f"{what}: {reference or 'nothing'} is not named by digest: NAME@sha256:... says what it is, a tag does not")


def build(
    registry: str, python_image: str, go_image: str, options: Iterable[str] = (), *, program: str = "buildah"
) -> dict[str, str]:
    """Build and push all images; each with the digest that the registry gave it.

    Raises:
        ImageError: a base is not named by digest.
        subprocess.CalledProcessError: a build or a push failed.
    """
    bases = [f"PYTHON_IMAGE={by_digest(python_image, '--python-image', local=True)}"]
    go = f"GO_IMAGE={by_digest(go_image, '--go-image', local=True)}"
    made = {}
    for name in NAMES:
        arguments = [*bases, go] if name == JOB else [*bases, f"FUNCTION={name}"]
        file = "knative/helm-job/Containerfile" if name == JOB else "knative/Containerfile"
        image = f"{registry}/{name}:{__version__}"
        given = [part for argument in arguments for part in ("--build-arg", argument)]
        subprocess.run([program, "build", *options, *given, "-t", image, "-f", file, "."], cwd=ROOT, check=True)
        with tempfile.TemporaryDirectory() as folder:
            digest = Path(folder) / "digest"
            subprocess.run([program, "push", "--digestfile", str(digest), image, f"docker://{image}"], check=True)
            made[name] = f"{registry}/{name}@{digest.read_text(encoding='utf-8').strip()}"
    return made


def pin(images: dict[str, str], into: Path, *, base: Path, config: Path) -> list[Path]:
    """Write a kustomization over ``base`` with these images, and the configuration with the image of Helm's Jobs; the files.

    The admission policies follow the configuration: their lists name its images, labels, roles and namespaces.

    Raises:
        ImageError: one of our images is missing, unknown or not named by digest.
    """
    if unknown := sorted(images.keys() - set(NAMES)):
        raise ImageError(f"{', '.join(unknown)}: not an image of ours; there are {', '.join(NAMES)}")
    if missing := [name for name in NAMES if name not in images]:
        raise ImageError(f"no image for {', '.join(missing)}")
    parts = {name: by_digest(images[name], name).split("@") for name in NAMES}
    configuration = yaml.safe_load(config.read_text(encoding="utf-8")) or {}
    controller = configuration.setdefault("helmProjectOperator", {}).setdefault("helmController", {})
    controller["jobImage"] = images[JOB]
    Config.model_validate(configuration)
    into.mkdir(parents=True, exist_ok=True)
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(base.resolve(), into.resolve())],
        "images": [
            {"name": PLACEHOLDER + name, "newName": image, "digest": digest}
            for name, (image, digest) in parts.items()
            if name != JOB
        ],
        "patches": list(_policy_patches(Config.model_validate(configuration))),
        "configMapGenerator": [
            {
                "name": "tenantry-config",
                "namespace": "tenantry-system",
                "behavior": "replace",
                "files": ["tenantry.yaml"],
                "options": {"labels": {"app.kubernetes.io/part-of": "tenantry"}},
            }
        ],
    }
    files = {into / "kustomization.yaml": kustomization, into / "tenantry.yaml": configuration}
    for file, content in files.items():
        file.write_text(_HEAD + yaml.safe_dump(content, sort_keys=False, width=130), encoding="utf-8")
    return list(files)


def _policy_patches(config: Config) -> Iterator[dict[str, Any]]:
    """For each admission policy that the configuration changes a patch of its spec: fences have lists of images and names."""
    for before, after in zip(all_policies(Config()), all_policies(config), strict=True):
        if after["spec"] != before["spec"]:
            patch = [{"op": "replace", "path": "/spec", "value": after["spec"]}]
            target = {"kind": before["kind"], "name": before["metadata"]["name"]}
            yield {"target": target, "patch": yaml.safe_dump(patch, sort_keys=False, width=130)}


def findings(documents: Iterable[Any]) -> list[str]:
    """What is wrong with the images that rendered manifests name; empty: all are named by digest."""
    found = []
    for document in documents:
        if not isinstance(document, dict):
            continue
        where = f"{document.get('kind')} {(document.get('metadata') or {}).get('name')}"
        for image in _images(document):
            if image.startswith(PLACEHOLDER):
                found.append(f"{where}: {image} is a placeholder: build it, and pin what was built")
            elif not _DIGEST.fullmatch(image):
                found.append(f"{where}: {image} is not named by digest")
        if document.get("kind") == "ConfigMap" and (text := (document.get("data") or {}).get("tenantry.yaml")):
            controller = Config.model_validate(yaml.safe_load(text) or {}).helm_project_operator.helm_controller
            if controller.enabled and not _DIGEST.fullmatch(controller.job_image):
                told = controller.job_image or "empty, which stands for a placeholder"
                found.append(f"{where}: helmProjectOperator.helmController.jobImage is {told}: name it by digest")
    return found


def _images(part: Any) -> Iterator[str]:
    """The images of all containers below a part of a manifest."""
    if isinstance(part, list):
        for each in part:
            yield from _images(each)
    elif isinstance(part, dict):
        for name, value in part.items():
            if name in ("containers", "initContainers", "ephemeralContainers") and isinstance(value, list):
                yield from (each["image"] for each in value if isinstance(each, dict) and isinstance(each.get("image"), str))
            yield from _images(value)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Build our images, and pin what was built.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    building, pinning, checking = (verbs.add_parser(name) for name in ("build", "pin", "check"))
    building.add_argument("--registry", required=True, help="where the images go, as registry.example.com/tenantry")
    building.add_argument("--python-image", default="", metavar="REF", help="base of all images, by digest")
    building.add_argument("--go-image", default="", metavar="REF", help="what builds Helm, by digest")
    building.add_argument("--program", default="buildah", help="buildah or podman")
    for verb in (building, pinning):
        verb.add_argument("--into", type=Path, default=ROOT / "dist" / "deploy", metavar="FOLDER")
        verb.add_argument(
            "--base", type=Path, default=ROOT / "knative", metavar="FOLDER", help="what the installation begins with"
        )
        verb.add_argument("--config", type=Path, default=ROOT / "knative/config/tenantry.yaml", metavar="FILE")
    building.add_argument("options", nargs="*", help="after --: for each build")
    pinning.add_argument("images", nargs="+", metavar="NAME=IMAGE@sha256:DIGEST")
    checking.add_argument("files", nargs="*", type=Path, help="rendered manifests; none: standard input")
    return parser


def main() -> int:
    """Do it; 1 where `check` found something, 2 where an image is not named as it has to be."""
    given = _parser().parse_args()
    try:
        if given.verb == "check":
            texts = [file.read_text(encoding="utf-8") for file in given.files] or [sys.stdin.read()]
            found = findings(document for text in texts for document in yaml.safe_load_all(text))
            print("\n".join(found) or "every image is named by digest")
            return 1 if found else 0
        if given.verb == "build":
            images = build(given.registry, given.python_image, given.go_image, given.options, program=given.program)
        else:
            images = dict(each.partition("=")[::2] for each in given.images)
        files = pin(images, given.into, base=given.base, config=given.config)
    except ImageError as error:
        print(f"images: {error}", file=sys.stderr)
        return 2
    print(f"wrote {', '.join(map(str, files))}; kubectl apply --server-side -k {given.into}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
