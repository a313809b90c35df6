"""Chart archives: equal bytes for equal files, and errors that say what to do."""

from __future__ import annotations

import base64
import io
import os
import tarfile
from pathlib import Path

import pytest

from release_provisioning.archives import chart_contents, pack
from tenantry.model.config import Config
from tenantry.serving.config import ConfigError


def config(chart: object) -> Config:
    one = {"helmApiVersion": "a.b/v1", "releaseName": "a", "chart": chart}
    return Config.model_validate({"helmProjectOperator": {"charts": [one]}})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "mine"
    (made / "templates").mkdir(parents=True)
    (made / "Chart.yaml").write_text("name: mine\n")
    (made / "templates" / "b.yaml").write_text("b: 1\n")
    (made / ".git").mkdir()
    (made / ".git" / "config").write_text("secret\n")
    (made / "link").symlink_to("/etc/passwd")
    return made


def test_equal_files_give_equal_bytes(folder: Path) -> None:
    """Times and modes do not matter, hidden files and links are left out, and an own file changes the bytes."""
    first = pack(folder)
    for path in folder.rglob("*.yaml"):
        os.utime(path, (1, 1))
        path.chmod(0o600)

    assert pack(folder) == first
    with tarfile.open(fileobj=io.BytesIO(first)) as archive:
        assert archive.getnames() == ["chart/Chart.yaml", "chart/templates/b.yaml"]
    (folder / "values.yaml").write_text("")
    assert pack(folder) != first


def test_an_archive_is_taken_as_it_is(folder: Path, tmp_path: Path) -> None:
    """A .tgz goes into the HelmChart byte by byte; a repository has no content; the default is the example chart."""
    archive = tmp_path / "mine.tgz"
    archive.write_bytes(pack(folder))

    assert base64.b64decode(chart_contents(config(str(archive)))["a.b/v1"]) == archive.read_bytes()
    assert chart_contents(config({"repo": "r", "name": "n", "version": "1"})) == {}
    assert set(chart_contents(Config())) == {"dummy.cattle.io/v1alpha1"}


def test_a_chart_that_cannot_be_is_told(folder: Path) -> None:
    """One that is missing or too large stops the start, with the key and the way out."""
    with pytest.raises(ConfigError, match=r"charts\[0\].chart: .* cannot be read"):
        chart_contents(config(str(folder / "none.tgz")))
    (folder / "large.bin").write_bytes(os.urandom(1_000_000))
    with pytest.raises(ConfigError, match="put it into a repository"):
        chart_contents(config(str(folder)))
