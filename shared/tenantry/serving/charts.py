"""The values and questions of each configured chart, read once at start.

A chart is a folder, a ``.tgz``, a reference into a repository (then nothing can be shown: empty texts, as
upstream does for a managed chart), or, when nothing is configured, the built-in example chart.
"""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from tenantry.model.config import Chart, Config
from tenantry.model.projects import ChartFiles
from tenantry.serving.config import ConfigError

SETTING = "helmProjectOperator.charts.chart"
"""A function that reads it does not start when a chart cannot be read."""

EXAMPLE_CHART = Path(__file__).parent / "example_chart"
_SUFFIXES = (".yaml", ".yml")


def chart_files(config: Config) -> tuple[ChartFiles, ...]:
    """What registration namespaces show of every chart.

    Raises:
        ConfigError: a chart cannot be read, or holds two of a file (``values.yaml`` and ``values.yml``).
    """
    charts = config.helm_project_operator.charts
    return tuple(_files(chart, f"helmProjectOperator.charts[{index}].chart") for index, chart in enumerate(charts))


def path_of(chart: Chart) -> Path | None:
    """The folder or archive of a chart; None for one in a repository."""
    if chart.chart is None:
        return EXAMPLE_CHART
    return Path(chart.chart) if isinstance(chart.chart, PurePosixPath) else None


def _files(chart: Chart, key: str) -> ChartFiles:
    path, found = path_of(chart), dict[str, str]()
    if path is not None:
        found = _from_folder(path, key) if path.is_dir() else _from_archive(path, key)
    return ChartFiles(chart.config_map_name, found.get("values", ""), found.get("questions", ""))


def _from_archive(path: Path, key: str) -> dict[str, str]:
    try:
        with tarfile.open(path) as archive:
            texts: dict[str, str] = {}
            for member in archive.getmembers():
                parts = PurePosixPath(member.name).parts
                if member.isfile() and len(parts) == 2 and (content := archive.extractfile(member)) is not None:
                    if _stem(parts[1]) and parts[1] in texts:
                        raise ConfigError(f"{key}: {path} holds {parts[1]} twice; keep one")
                    texts[parts[1]] = content.read().decode() if _stem(parts[1]) else ""
    except (OSError, EOFError, zlib.error, tarfile.TarError, UnicodeDecodeError) as error:
        said = " ".join(str(error).split())
        raise ConfigError(f"{key}: {path} is no chart: {said}; name a chart folder or a .tgz") from error
    return _pick(texts, path, key)


def _from_folder(path: Path, key: str) -> dict[str, str]:
    try:
        files = [entry for entry in path.iterdir() if entry.is_file()]
        texts = {entry.name: entry.read_text(encoding="utf-8") if _stem(entry.name) else "" for entry in files}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{key}: {path} cannot be read: {error}") from error
    return _pick(texts, path, key)


def _stem(name: str) -> str:
    path = PurePosixPath(name)
    return path.stem if path.stem in ("values", "questions") and path.suffix in _SUFFIXES else ""


def _pick(texts: Mapping[str, str], path: Path, key: str) -> dict[str, str]:
    if not any(f"Chart{suffix}" in texts for suffix in _SUFFIXES):
        raise ConfigError(f"{key}: {path} is no chart: it has no Chart.yaml")
    found: dict[str, str] = {}
    for name, text in texts.items():
        if stem := _stem(name):
            if stem in found:
                raise ConfigError(f"{key}: {path} holds both {stem}.yaml and {stem}.yml; keep one")
            found[stem] = text
    return found
