"""The start of everything on one machine, told in one line for each phase."""

from __future__ import annotations

from tenantry.local.install import Installed
from tenantry.local.phases import Phases


def an(kind: str, name: str) -> Installed:
    return Installed({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})


def test_what_is_installed_is_counted_and_everything_else_is_said() -> None:
    """Objects are counted by kind, the most frequent first; what people have to know of the installation is a line as before."""
    told: list[tuple[str, str]] = []
    said: list[str] = []
    phases = Phases(lambda phase, what, seconds: told.append((phase, what)), said.append)

    for line in (*(an("ClusterRole", str(number)) for number in range(3)), an("Namespace", "a"), "kept Namespace b: theirs"):
        phases.install(line)
    phases.installed()
    phases.started(15, 5)

    assert told == [("installed", "3 ClusterRole, 1 Namespace"), ("functions", "5, as 15 services")]
    assert said == ["kept Namespace b: theirs"]
    assert an("Namespace", "a") == "installed Namespace a"


def test_a_second_start_installs_nothing() -> None:
    """Then the phase says so."""
    told: list[str] = []
    Phases(lambda phase, what, seconds: told.append(what), print).installed()

    assert told == ["everything was there already"]


def test_what_is_not_served_is_named_by_whose_it_is() -> None:
    """Each owner of groups once; where everything is served nothing is said of it."""
    told: list[str] = []
    phases = Phases(lambda phase, what, seconds: told.append(what), print)

    phases.watched(36)
    phases.unserved |= {"kustomize.toolkit.fluxcd.io/v1", "source.toolkit.fluxcd.io/v1", "argoproj.io/v1alpha1"}
    phases.watched(36)

    assert told == ["36", "36; not here, so not watched: argoproj.io, fluxcd.io"]
