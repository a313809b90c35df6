"""The archive of each embedded chart, for HelmCharts: a ``.tgz`` in base64, equal bytes for equal files.

A configured ``.tgz`` is taken as it is.  A folder is packed with sorted names and without times and owners, so that
the same files give the same bytes wherever one image runs, and nothing is rolled out for nothing.
Symbolic links, and files and folders whose name begins with a dot, are left out.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

from tenantry.model import limits
from tenantry.model.config import Config
from tenantry.serving.charts import path_of
from tenantry.serving.config import ConfigError


def chart_contents(config: Config) -> dict[str, str]:
    """The content of every chart that is not in a repository, by its helmApiVersion.

    Raises:
        ConfigError: a chart cannot be read or is too large.
    """
    charts = config.helm_project_operator.charts
    return {
        chart.helm_api_version: _content(path, f"helmProjectOperator.charts[{index}].chart")
        for index, chart in enumerate(charts)
        if (path := path_of(chart)) is not None
    }


def _content(path: Path, key: str) -> str:
    try:
        packed = pack(path) if path.is_dir() else path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{key}: {path} cannot be read: {error}") from error
    content = b64encode(packed).decode()
    if len(content) > limits.CHART_CHARACTERS:
        raise ConfigError(
            f"{key}: {path} has {len(content)} characters as base64 and at most {limits.CHART_CHARACTERS} fit into a HelmChart: "
            "put it into a repository and give repo, name and version"
        )
    return content


def pack(folder: Path) -> bytes:
    """A chart folder as a ``.tgz`` that depends on nothing but the names and bytes of its files."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, path in sorted((path.relative_to(folder).as_posix(), path) for path in _files(folder)):
            entry = tarfile.TarInfo(f"chart/{name}")
            content = path.read_bytes()
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), compresslevel=9, mtime=0)


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(".") or path.is_symlink():
            continue
        if path.is_dir():
            yield from _files(path)
        elif path.is_file():
            yield path
