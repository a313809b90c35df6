"""Where the programs of the control plane come from, and why a place is passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenantry.local.control_plane.binaries import ensure_binaries, ensure_helm, find_binaries
from tenantry.local.control_plane.catalogue import ALL_MODULES, HELM, MODULES
from tenantry.local.control_plane.errors import BinariesError

_VERSIONS = {
    "etcd": "etcd Version: 3.6.1",
    "kube-apiserver": "Kubernetes v1.35.2",
    "kube-controller-manager": "Kubernetes v1.35.2",
}


def _programs(folder: Path, **changes: str | None) -> Path:
    for name, answer in (_VERSIONS | {key.replace("_", "-"): value for key, value in changes.items()}).items():
        if answer is not None:
            _program(folder / name, f"echo '{answer}'")
    return folder


def _program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture(autouse=True)
def _nothing_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TENANTRY_CONTROL_PLANE", raising=False)
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("TENANTRY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


def _cached(tmp_path: Path) -> None:
    for module in MODULES:
        _programs(tmp_path / "home" / "bin" / module.key)


def test_named_folder_is_used_before_every_other_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TENANTRY_CONTROL_PLANE wins over the assets, PATH and the cache."""
    named = _programs(tmp_path / "named")
    monkeypatch.setenv("TENANTRY_CONTROL_PLANE", str(named))
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(_programs(tmp_path / "assets")))
    _cached(tmp_path)

    binaries = ensure_binaries()

    assert binaries.path("kube-apiserver") == named / "kube-apiserver"
    assert binaries.version("kubernetes") == "1.35.2"


def test_missing_program_in_the_named_folder_is_an_error_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that was named is taken at its word: what lacks there is said, and nothing is built."""
    named = _programs(tmp_path / "named", kube_controller_manager=None)
    monkeypatch.setenv("TENANTRY_CONTROL_PLANE", str(named))

    with pytest.raises(BinariesError, match="no executable kube-controller-manager") as caught:
        ensure_binaries()

    assert str(named) in str(caught.value)
    assert "Remedy" in str(caught.value)


def test_assets_without_a_controller_manager_give_etcd_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The envtest assets have no controller manager, so both Kubernetes programs come from elsewhere."""
    assets = _programs(tmp_path / "assets", kube_controller_manager=None)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    _cached(tmp_path)

    found, passed_over = find_binaries()

    assert {one.module: one.place for one in found} == {
        "etcd": f"KUBEBUILDER_ASSETS ({assets})",
        "kubernetes": "cache",
    }
    assert passed_over == [f"KUBEBUILDER_ASSETS ({assets}) has no executable kube-controller-manager"]


def test_old_programs_on_path_are_refused_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kube-apiserver before 1.34 on PATH is passed over, and the reason names both versions."""
    old = _programs(tmp_path / "old", kube_apiserver="Kubernetes v1.33.9")
    monkeypatch.setenv("PATH", f"{old}:/usr/bin:/bin")
    _cached(tmp_path)

    found, passed_over = find_binaries()

    assert {one.module: one.place for one in found} == {"etcd": "PATH", "kubernetes": "cache"}
    assert passed_over == ["kube-apiserver of PATH is version 1.33.9, and Tenantry needs 1.34 or newer"]


def test_programs_of_different_versions_are_not_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """kube-apiserver and kube-controller-manager are taken together or not at all."""
    mixed = _programs(tmp_path / "mixed", kube_controller_manager="Kubernetes v1.36.0")
    monkeypatch.setenv("PATH", f"{mixed}:/usr/bin:/bin")
    _cached(tmp_path)

    found, passed_over = find_binaries()

    assert {one.module: one.place for one in found}["kubernetes"] == "cache"
    assert "mixes versions (kube-apiserver 1.35.2, kube-controller-manager 1.36.0)" in passed_over[0]


def test_a_half_built_cache_does_not_count(tmp_path: Path) -> None:
    """A module's folder in the cache counts only with all of its programs."""
    _cached(tmp_path)
    kubernetes = next(module for module in MODULES if module.name == "kubernetes")
    (tmp_path / "home" / "bin" / kubernetes.key / "kube-controller-manager").unlink()

    found, _ = find_binaries()

    assert [one.module for one in found] == ["etcd"]


def test_helm_may_be_missing_in_the_named_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that was named for the control plane need not hold Helm: it comes from the next place."""
    monkeypatch.setenv("TENANTRY_CONTROL_PLANE", str(_programs(tmp_path / "named")))
    _programs(tmp_path / "home" / "bin" / HELM.key, helm="v3.22.0")

    binaries = ensure_binaries(modules=ALL_MODULES)

    assert {one.module: one.place for one in binaries.found} == {
        "etcd": f"TENANTRY_CONTROL_PLANE ({tmp_path / 'named'})",
        "kubernetes": f"TENANTRY_CONTROL_PLANE ({tmp_path / 'named'})",
        "helm": "cache",
    }


def test_helm_is_asked_in_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Helm has no ``--version``; the Helm of the named folder and that of PATH are asked ``version --short``."""
    for place in ("named", "on-path"):
        _program(tmp_path / place / "helm", '[ "$*" = "version --short" ] && echo v3.19.4+g7cfb6e4')
    monkeypatch.setenv("PATH", f"{tmp_path / 'on-path'}:/usr/bin:/bin")

    assert [(one.version, one.place) for one in find_binaries((HELM,))[0]] == [("3.19.4", "PATH")]

    monkeypatch.setenv("TENANTRY_CONTROL_PLANE", str(tmp_path / "named"))

    assert ensure_helm() == tmp_path / "named" / "helm"


def test_a_helm_of_the_next_major_version_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Helm 4 on PATH has other flags and defaults: it is passed over with the reason."""
    monkeypatch.setenv("PATH", f"{_programs(tmp_path / 'new', helm='v4.0.1')}:/usr/bin:/bin")
    _programs(tmp_path / "home" / "bin" / HELM.key, helm="v3.22.0")

    found, passed_over = find_binaries((HELM,))

    assert [one.place for one in found] == ["cache"]
    assert passed_over == ["helm of PATH is version 4.0.1, and Tenantry needs 3.14 or newer and older than 4.0"]
