"""Writes what is in the wheel, in the images and in a development environment: one CycloneDX 1.6 file in JSON each.

    python tools/sbom.py [--into FOLDER] [--python-image REF] [--go-image REF]

The lists come from the lock files and from go.mod and go.sum, so they are what an installation is held to, with every hash.  A
base image is named, by the reference that the build was given; what it is made of its publisher says.  The same input gives the
same file, but for the time: SOURCE_DATE_EPOCH sets it.
"""

from __future__ import annotations

import argparse
import os
import tomllib
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.bom_ref import BomRef
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from locked import IMAGE_LOCK, LOCK, ROOT, GoModule, Package, go_modules, licence_of, packages
from tenantry.local.control_plane import HELM
from tenantry.local.control_plane.catalogue import ALL_MODULES, EXTRA_MODULES

_NAMESPACE = uuid.UUID("1d4a3b3e-6a4c-5d0f-9f5e-7d1f0a6b2c11")


def project() -> Component:
    """Tenantry itself."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    made = _component(ComponentType.APPLICATION, "pypi", told["name"], told["version"])
    made.licenses.add(LicenseFactory().make_from_string(told["license"]))
    return made


def python_component(package: Package) -> Component:
    """A locked package, with the hash of each of its files."""
    made = _component(ComponentType.LIBRARY, "pypi", package.name.lower(), package.version)
    made.hashes.update(HashType(alg=HashAlgorithm.SHA_256, content=each) for each in package.hashes)
    if licence := licence_of(package):
        made.licenses.add(LicenseFactory().make_from_string(licence))
    if package.marker:
        made.properties.add(Property(name="tenantry:marker", value=package.marker))
    return made


def go_component(module: GoModule) -> Component:
    """A locked Go module; its checksum is of a folder, not of a file, so that it is no hash of CycloneDX."""
    namespace, _, name = module.path.rpartition("/")
    made = _component(ComponentType.LIBRARY, "golang", name, module.version, namespace)
    made.properties.add(Property(name="tenantry:go.sum", value=module.checksum))
    return made


def base_component(reference: str) -> Component:
    """The base image of an image, as the build was given it."""
    name, _, digest = reference.partition("@")
    return Component(type=ComponentType.CONTAINER, name=name, version=digest or None, bom_ref=BomRef(reference))


def boms(python_image: str = "", go_image: str = "") -> dict[str, Bom]:
    """The lists by the name of their file, without ending."""
    runtime = [python_component(each) for each in packages(IMAGE_LOCK)]
    here = [python_component(each) for each in packages(LOCK)]
    helm = [go_component(each) for each in go_modules(HELM.folder)]
    modules = (*ALL_MODULES, *EXTRA_MODULES)
    programs = [go_component(each) for module in modules for each in go_modules(module.folder)]
    python = [base_component(python_image)] if python_image else []
    go = [base_component(go_image)] if go_image else []
    version = project().version
    return {
        "wheel": _bom(project(), runtime),
        "image-function": _bom(_image("function", version), [project(), *runtime, *python]),
        "image-helm-job": _bom(_image("helm-job", version), [*helm, *python, *go]),
        "development": _bom(project(), [*here, *programs]),
    }


def write(folder: Path, made: dict[str, Bom]) -> list[Path]:
    """Write each list; the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, bom in made.items():
        file = folder / f"tenantry-{name}.cdx.json"
        file.write_text(JsonV1Dot6(bom).output_as_string(indent=2) + "\n", encoding="utf-8")
        files.append(file)
    return files


def _component(kind: ComponentType, system: str, name: str, version: str, namespace: str = "") -> Component:
    purl = PackageURL(type=system, namespace=namespace or None, name=name, version=version)
    group = namespace or None
    return Component(type=kind, group=group, name=name, version=version, purl=purl, bom_ref=BomRef(purl.to_string()))


def _image(name: str, version: str | None) -> Component:
    return Component(type=ComponentType.CONTAINER, name=f"tenantry/{name}", version=version, bom_ref=BomRef(f"image:{name}"))


def _bom(subject: Component, components: Iterable[Component]) -> Bom:
    unique = {each.bom_ref.value: each for each in components}
    bom = Bom(components=unique.values())
    bom.metadata.component = subject
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    bom.metadata.timestamp = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    bom.serial_number = uuid.uuid5(_NAMESPACE, "\n".join([subject.name, *sorted(map(str, unique))]))
    bom.register_dependency(subject, unique.values())
    return bom


def main() -> None:
    """Write the files and name them."""
    parser = argparse.ArgumentParser(description="Write the bills of materials.")
    parser.add_argument("--into", type=Path, default=ROOT / "dist" / "sbom", metavar="FOLDER")
    parser.add_argument("--python-image", default="", metavar="REF", help="base of the images, by digest")
    parser.add_argument("--go-image", default="", metavar="REF", help="what builds Helm, by digest")
    given = parser.parse_args()
    for file in write(given.into, boms(given.python_image, given.go_image)):
        print(file)


if __name__ == "__main__":
    main()
