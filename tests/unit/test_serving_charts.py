"""Values and questions of charts, read from folders and archives as Helm packs them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tenantry.model.config import Config
from tenantry.model.projects import ChartFiles
from tenantry.serving.charts import EXAMPLE_CHART, chart_files
from tenantry.serving.config import ConfigError

Make = Callable[[Path, Mapping[str, bytes]], Path]

WHOLE = {
    "Chart.yaml": b"name: c",
    "values.yaml": b"a: 1 # \xc3\xbc\n",
    "questions.yaml": b"questions: []\n",
    "README.md": b"\xff",
}


def config(*charts: Any) -> Config:
    entries = [{"helmApiVersion": f"g{n}.io/v1", "releaseName": "r", "chart": chart} for n, chart in enumerate(charts)]
    return Config.model_validate({"helmProjectOperator": {"charts": entries}})


def folder(at: Path, files: Mapping[str, bytes]) -> Path:
    path = at / "chart"
    (path / "templates").mkdir(parents=True)
    (path / "templates" / "values.yaml").write_text("not: these")
    for name, content in files.items():
        (path / name).write_bytes(content)
    return path


def archive(at: Path, files: Mapping[str, bytes], *, mode: str = "w:gz", root: str = "chart/") -> Path:
    path = at / "chart.tgz"
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, content in {**files, "templates/values.yaml": b"not: these"}.items():
            member = tarfile.TarInfo(root + name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


BOTH = pytest.mark.parametrize("make", [folder, archive], ids=["folder", "archive"])


def read(path: Path) -> ChartFiles:
    return chart_files(config(str(path)))[0]


@BOTH
@pytest.mark.check("hpo-3")
def test_values_and_questions_are_those_of_the_chart(make: Make, tmp_path: Path) -> None:
    """Both files are taken from the chart's root, byte for byte, and no other file is decoded."""
    assert read(make(tmp_path, WHOLE)) == ChartFiles("g0.io.v1", "a: 1 # ü\n", "questions: []\n")


@BOTH
def test_the_short_suffix(make: Make, tmp_path: Path) -> None:
    """``.yml`` is as good as ``.yaml``."""
    found = read(make(tmp_path, {"Chart.yml": b"", "values.yml": b"v", "questions.yml": b"q"}))
    assert (found.values, found.questions) == ("v", "q")


@BOTH
def test_a_chart_without_values(make: Make, tmp_path: Path) -> None:
    """Files that a chart does not have are empty texts."""
    found = read(make(tmp_path, {"Chart.yaml": b"", "values.json": b"{}", "values": b"x"}))
    assert (found.values, found.questions) == ("", "")


@BOTH
@pytest.mark.parametrize("stem", ["values", "questions"])
def test_two_files_of_one_meaning(make: Make, stem: str, tmp_path: Path) -> None:
    """A chart that holds both suffixes of a file is refused with the key that names the chart."""
    path = make(tmp_path, {"Chart.yaml": b"", f"{stem}.yaml": b"", f"{stem}.yml": b""})
    with pytest.raises(ConfigError, match=rf"charts\[0\]\.chart: {path} holds both {stem}.yaml and {stem}.yml; keep one"):
        read(path)


@BOTH
def test_no_chart(make: Make, tmp_path: Path) -> None:
    """A folder or archive without Chart.yaml is no chart."""
    with pytest.raises(ConfigError, match=r"charts\[0\]\.chart: .* is no chart: it has no Chart.yaml"):
        read(make(tmp_path, {"values.yaml": b""}))


@BOTH
def test_values_that_are_no_text(make: Make, tmp_path: Path) -> None:
    """Values in no UTF-8 are refused and not shown broken."""
    with pytest.raises(ConfigError, match="utf-8"):
        read(make(tmp_path, {"Chart.yaml": b"", "values.yaml": b"\xff\xfe"}))


def test_archives_of_other_forms(tmp_path: Path) -> None:
    """An uncompressed archive and one whose members begin with ``./`` are read too."""
    for kwargs in ({"mode": "w"}, {"root": "./chart/"}):
        assert read(archive(tmp_path, WHOLE, **kwargs)).questions == "questions: []\n"


def test_two_charts_in_one_archive(tmp_path: Path) -> None:
    """An archive that has two roots with values is ambiguous, and refused."""
    files = {"a/Chart.yaml": b"", "a/values.yaml": b"1", "b/values.yaml": b"2"}
    with pytest.raises(ConfigError, match=r"holds values.yaml twice; keep one"):
        read(archive(tmp_path, files, root=""))


def test_links_in_archives_are_not_followed(tmp_path: Path) -> None:
    """A link named values.yaml is no file of the chart."""
    path = tmp_path / "chart.tgz"
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("c/Chart.yaml"))
        link = tarfile.TarInfo("c/values.yaml")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    assert read(path).values == ""


@pytest.mark.parametrize("keep", [0, 10, 60, 300])
def test_broken_archives(keep: int, tmp_path: Path) -> None:
    """An archive that is cut off is refused with the key that names it."""
    path = archive(tmp_path, {**WHOLE, "values.yaml": bytes(range(128)) * 500})
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ConfigError, match=r"charts\[0\]\.chart: .* is no chart: .*; name a chart folder or a .tgz"):
        read(path)


def test_damaged_archives(tmp_path: Path) -> None:
    """An archive with wrong bytes in the middle is refused."""
    path = archive(tmp_path, WHOLE)
    content = bytearray(path.read_bytes())
    content[20:60] = b"\xff" * 40
    path.write_bytes(bytes(content))
    with pytest.raises(ConfigError, match="is no chart"):
        read(path)


def test_a_missing_chart(tmp_path: Path) -> None:
    """A path where nothing is stops the start."""
    with pytest.raises(ConfigError, match=r"No such file or directory.*name a chart folder or a .tgz"):
        read(tmp_path / "missing.tgz")


@pytest.mark.check("hpo-54")
def test_every_chart_in_its_order(tmp_path: Path) -> None:
    """A reference shows nothing, no chart means the example, and errors count from the list's start."""
    reference = {"repo": "https://r", "name": "n", "version": "1"}
    found = chart_files(config(reference, None, str(folder(tmp_path, WHOLE))))
    assert found[0] == ChartFiles("g0.io.v1", "", "")
    assert found[1] == ChartFiles(
        "g1.io.v1", (EXAMPLE_CHART / "values.yaml").read_text(), (EXAMPLE_CHART / "questions.yaml").read_text()
    )
    assert found[2].values == "a: 1 # ü\n"
    with pytest.raises(ConfigError, match=r"helmProjectOperator.charts\[1\].chart"):
        chart_files(config(reference, "/missing"))
