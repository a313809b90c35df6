"""What is locked: Python packages with hashes and markers from the lock files, Go modules with checksums from go.mod and go.sum.

`LOCK` has everything that is installed here, `IMAGE_LOCK` what a function needs in its image, `BUILD_LOCK` what makes the wheel;
the last two are parts of the first.  Pure reading: nothing is resolved and nobody is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
IMAGE_LOCK = ROOT / "requirements-image.lock"
BUILD_LOCK = ROOT / "requirements-build.lock"

ALLOWED = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "ISC",
        "MIT",
        "MIT-0",
        "MPL-2.0",
        "PSF-2.0",
        "Python-2.0",
        "Unlicense",
        "Zlib",
    }
)
"""Licences of packages that may be locked: free, and without conditions on what is linked or shipped with them."""

_PIN = re.compile(r"^(?P<name>[\w.-]+)(?:\[[\w,-]+\])?==(?P<version>[\w.+!]+)(?: ; (?P<marker>.+?))?\s*\\?$")
_HASH = re.compile(r"^    --hash=sha256:([0-9a-f]{64})(?: \\)?$")
_REQUIRE = re.compile(r"^\s*(?:require )?(?P<path>[\w.~/-]+) (?P<version>v[\w.+-]+)(?:\s*//.*)?$")
_REPLACE = re.compile(r"^\s*(?:replace )?(?P<path>[\w.~/-]+)(?: v\S+)? => (?P<by>[\w.~/-]+) (?P<version>v[\w.+-]+)$")

_WORDS = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd 2-clause license": "BSD-2-Clause",
    "bsd license": "BSD-3-Clause",
    "https://www.apache.org/licenses/license-2.0": "Apache-2.0",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "psfl": "PSF-2.0",
    "python software foundation license": "PSF-2.0",
}
"""Names that packages give their licence by, where it is no SPDX expression."""

_ELSEWHERE = {"colorama": "BSD-3-Clause"}
"""Packages that are locked for other systems, and so have no metadata here."""


class LockError(ValueError):
    """A lock file has a line that is no pinned package with hashes; the text names file and line."""


@dataclass(frozen=True, slots=True)
class Package:
    """One pinned Python package; ``marker`` says where it is installed, empty: everywhere."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GoModule:
    """One pinned Go module with the checksum of its content (``h1:...``)."""

    path: str
    version: str
    checksum: str


def packages(lock: Path = LOCK) -> list[Package]:
    """The packages of a lock file.

    Raises:
        LockError: a line that is neither a pin nor a hash, or a pin without a hash.
    """
    found: list[tuple[re.Match[str], list[str]]] = []
    for number, line in enumerate(lock.read_text(encoding="utf-8").splitlines(), 1):
        pin, hashed = _PIN.match(line), _HASH.match(line)
        if pin:
            found.append((pin, []))
        elif hashed and found:
            found[-1][1].append(hashed[1])
        elif line.strip() and not line.startswith("#"):
            raise LockError(f"{lock.name}:{number}: not a package pinned by == with --hash=sha256: {line.strip()}")
    for pin, hashes in found:
        if not hashes:
            raise LockError(f"{lock.name}: {pin['name']} has no hash; `make lock` writes them")
    return [Package(pin["name"], pin["version"], pin["marker"] or "", tuple(hashes)) for pin, hashes in found]


def licence_of(package: Package) -> str:
    """The SPDX expression of a package's licence, from its own metadata; empty where it has none that we know."""
    try:
        told = metadata.metadata(package.name)
    except metadata.PackageNotFoundError:
        return _ELSEWHERE.get(package.name, "")
    if expression := told.json.get("license_expression"):
        return str(expression)
    named = [each.rpartition(" :: ")[2] for each in told.get_all("Classifier") or () if each.startswith("License ::")]
    for word in (str(told.json.get("license", "")), *named):
        if found := word if word in ALLOWED else _WORDS.get(word.strip().lower(), ""):
            return found
    return ""


def is_allowed(expression: str) -> bool:
    """Whether a licence expression leaves us a choice of `ALLOWED` licences."""
    return bool(expression) and all(
        any(choice.strip(" ()") in ALLOWED for choice in part.split(" OR ")) for part in expression.split(" AND ")
    )


def go_modules(folder: Path) -> list[GoModule]:
    """The modules that a go.mod names, replacements in their place, with the checksums of go.sum.

    Raises:
        LockError: a module without a checksum.
    """
    text = (folder / "go.mod").read_text(encoding="utf-8")
    replaced = {match["path"]: (match["by"], match["version"]) for match in _lines(text, _REPLACE)}
    wanted = {replaced.get(match["path"], (match["path"], match["version"])) for match in _lines(text, _REQUIRE)}
    sums = {}
    for line in (folder / "go.sum").read_text(encoding="utf-8").splitlines():
        path, version, checksum = line.split(" ")
        sums[path, version] = checksum
    for path, version in sorted(wanted):
        # What nothing of ours is built from has only the checksum of its go.mod.
        if (path, version) not in sums and (path, f"{version}/go.mod") not in sums:
            raise LockError(f"{folder.name}/go.sum: no checksum of {path} {version}")
    return [GoModule(path, version, sums[path, version]) for path, version in sorted(wanted) if (path, version) in sums]


def _lines(text: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    for line in text.splitlines():
        if match := pattern.match(line):
            yield match
