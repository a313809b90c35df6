"""The map as a pure value: whose is what, whom a problem concerns, what runs, and how all of it is drawn."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from map_objects import NOW, said

from tenantry.cli import main
from tenantry.cli.served import has_ours
from tenantry.cli.standing.draw import head_lines, problem_lines, status_lines, tree_lines
from tenantry.cli.standing.glyphs import ASCII, UNICODE, Glyphs, Line, cut, printable
from tenantry.cli.standing.look import parsed_target
from tenantry.cli.standing.page import page_of
from tenantry.cli.standing.picture import picture_of
from tenantry.cli.standing.read import marks, tells
from tenantry.model.config import Config
from tenantry.model.flux.names import ACCESS_INDEX, TENANCY_PROFILE, TENANT
from tenantry.model.kinds import (
    HELM_CHART,
    HELM_RELEASE,
    NAMESPACE,
    PROJECT_HELM_CHART,
    ROLE_BINDING,
    SCOPE_INSTANCE,
    Kind,
    Object,
)
from tenantry.model.map import Map, MapSeen, map_of
from tenantry.model.map.problems import fix_in
from tenantry.model.map.seen import kept
from tenantry.model.map.system import (
    GivenUp,
    System,
)
from tenantry.model.names import OPERATED, PROJECT_CHART, PROJECT_ID, SCOPE_INSTANCE_UID
from tenantry.model.projects import RELEASE_MANAGER
from tenantry.testing.objects import obj

LABEL = "field.cattle.io/projectId"
MADE_FOR_RELEASE = [
    {
        "manager": RELEASE_MANAGER,
        "operation": "Apply",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {"f:kubernetes.io/metadata.name": {}}}},
    }
]
HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[31m"


def user(name: str) -> Object:
    return {"kind": "User", "name": name}


def bound(name: str, namespace: str, role: str, *subjects: Object, **labels: str) -> Object:
    ref = {"kind": "ClusterRole", "name": role}
    return obj(ROLE_BINDING, name, namespace, labels=labels or None, roleRef=ref, subjects=list(subjects))


def seen(lists: dict[Kind, list[Object]], **more: Any) -> MapSeen:
    return MapSeen(lists, Config(), tells=tells(), marks=marks(), **more)


def project(**more: Any) -> Map:
    """A project with a registration namespace, two members and a release; and a tenant whose namespace is in no project."""
    home, chart = "cattle-project-p-a", {PROJECT_CHART: "cattle-project-p-a/demo"}
    return map_of(
        seen(
            {
                NAMESPACE: [
                    obj(NAMESPACE, home, labels={OPERATED: "true", PROJECT_ID: "p-a"}),
                    obj(NAMESPACE, "team-a", labels={LABEL: "p-a", PROJECT_ID: "p-a"}),
                    obj(
                        NAMESPACE,
                        "tools",
                        labels={LABEL: "p-a"},
                        status=said("tenantry.dev/Registered", "False", "QuotaExceeded"),
                    ),
                    obj(
                        NAMESPACE,
                        "demo-x",
                        labels={PROJECT_ID: "p-a"},
                        annotations=chart,
                        metadata={"managedFields": MADE_FOR_RELEASE},
                    ),
                    obj(NAMESPACE, "apps", labels={"tenantry.dev/tenant": "crew"}),
                    obj(NAMESPACE, "kube-system", labels={}),
                ],
                ROLE_BINDING: [
                    bound("owners", home, "admin", user("ann")),
                    bound("devs", "team-a", "edit", user("ann"), user("ben"), {"kind": "ServiceAccount", "name": "ci"}),
                    bound("odd", "tools", "view", user("cem"), {"kind": "Group", "name": "all"}),
                    bound("system:x", "kube-system", "view", user("nobody")),
                    bound("platform", "kube-system", "view", user("root")),
                    bound("reader", "team-a", "r", user("op"), **{SCOPE_INSTANCE_UID: "uid-scope"}),
                ],
                PROJECT_HELM_CHART: [obj(PROJECT_HELM_CHART, "demo", home, status=said("Stalled", "True", "HelmFailed"))],
                HELM_CHART: [
                    obj(HELM_CHART, "demo-x", "cattle-helm-system", annotations=chart, status=said("Failed", "True", "JobFailed"))
                ],
                HELM_RELEASE: [
                    obj(HELM_RELEASE, "demo-x", "cattle-helm-system", annotations=chart, status=said("Locked", "False", "Paused"))
                ],
                SCOPE_INSTANCE: [{**obj(SCOPE_INSTANCE, "scope"), "metadata": {"name": "scope", "uid": "uid-scope"}}],
                TENANT: [
                    obj(TENANT, "crew", status=said("Ready", "False", "NamespaceReserved", "it is the platform's: name another"))
                ],
                **more.pop("lists", {}),
            },
            **more,
        )
    )


def drawn(map_: Map, target: tuple[str, str], glyphs: Glyphs = UNICODE) -> list[str]:
    node = map_.find(*target)
    assert node is not None
    return [line.text for line in tree_lines([node], glyphs)]


# -- whose is what -------------------------------------------------------------------------------------------------------


def test_a_project_has_its_registration_first_and_its_release_below_the_chart() -> None:
    """Objects of a release are where they were asked for, not where they live, and a binding says whom it was made for."""
    assert drawn(project(), ("project", "p-a")) == [
        "project/p-a (4 namespaces, 6 people)",
        "├── cattle-project-p-a (registration)",
        "│   ├── ProjectHelmChart demo  ✗ HelmFailed",
        "│   │   ├── HelmChart demo-x  ✗ JobFailed",
        "│   │   ├── HelmRelease demo-x (not locked)",
        "│   │   └── demo-x (release)",
        "│   └── RoleBinding owners: ClusterRole/admin to User ann",
        "├── team-a",
        "│   ├── RoleBinding devs: ClusterRole/edit to User ann, User ben, ServiceAccount team-a/ci",
        "│   └── RoleBinding reader: ClusterRole/r to User op, made for scope/scope",
        "└── tools  ✗ QuotaExceeded",
        "    └── RoleBinding odd: ClusterRole/view to User cem, Group all",
    ]


def test_everything_is_in_one_place_of_the_tree() -> None:
    """Each namespace is below its owner, or in a group of its own; Kubernetes' own bindings are left out."""
    groups = {group.name: [child.name for child in group.children] for group in project().groups}
    assert groups == {
        "projects": ["p-a"],
        "tenants": ["crew"],
        "namespaces of the system": ["kube-system"],
        "cluster": ["scope"],
    }
    assert [child.name for child in project().groups[2].children[0].children] == ["platform"]


def test_who_reaches_what_is_by_subject() -> None:
    """Each subject with namespace and role, whatever the binding is called."""
    reach = project().reach
    assert reach["User ann"] == (("cattle-project-p-a", "ClusterRole/admin"), ("team-a", "ClusterRole/edit"))
    assert "ServiceAccount team-a/ci" in reach


# -- what is wrong -------------------------------------------------------------------------------------------------------


def test_problems_come_by_how_many_they_concern() -> None:
    """An object in a registration namespace concerns its whole project; people of the system's namespaces count for nobody."""
    found = [(each.reason, each.people, each.namespaces) for each in project().problems]
    assert found == [("JobFailed", 6, 4), ("HelmFailed", 6, 4), ("QuotaExceeded", 2, 1), ("NamespaceReserved", 0, 1)]
    assert all(each.fix and each.owner for each in project().problems)


def test_warnings_come_after_errors_and_do_not_count_as_wrong() -> None:
    """What concerns everybody and only warns is behind an error that concerns one."""
    index = obj(ACCESS_INDEX, "default", status=said("NearlyFull", "True", "NearlyFull"))
    found = project(lists={ACCESS_INDEX: [index]})
    assert found.problems[-1].reason == "NearlyFull"
    assert found.problems[-1].people == 6
    assert "NearlyFull" not in {each.reason for each in found.errors}


def test_what_somebody_asked_for_is_no_problem() -> None:
    """A paused lock and a profile that enforces nothing are as they are wanted."""
    profile = obj(TENANCY_PROFILE, "default", status=said("Enforced", "False", "SingleTenant"))
    assert not {"Paused", "SingleTenant"} & {each.reason for each in project(lists={TENANCY_PROFILE: [profile]}).problems}


def test_of_another_systems_kinds_only_what_is_ours_counts() -> None:
    """A Kustomization that fails by itself is Flux' business; one that is locked is ours."""
    kind = next(each.kind for each in tells() if each.kind.kind == "Kustomization")
    lists = {
        kind: [
            obj(kind, "broken", "apps", status=said("Ready", "False", "BuildFailed")),
            obj(kind, "locked", "apps", status=said("Ready", "False", "AccessDenied")),
        ]
    }
    found = project(lists=lists)
    assert [line for line in drawn(found, ("tenant", "crew")) if "Kustomization" in line] == [
        "    └── Kustomization locked  ✗ AccessDenied"
    ]


@pytest.mark.parametrize(
    ("message", "fix"),
    [
        ("the project id is empty: set the label to a project id, or remove it", "set the label to a project id, or remove it"),
        ("Namespace x was refused: to fix it, raise the quota (the API server says: no: never)", "raise the quota"),
        ("Namespace x was refused: to fix it, raise the quota", "raise the quota"),
        ("the last Helm operation of x failed: timed out waiting", ""),
        ("all is lost", ""),
    ],
)
def test_the_way_out_is_the_last_clause_of_a_message(message: str, fix: str) -> None:
    """It begins with a verb, or follows the words of a refusal; an error of others is none."""
    assert fix_in(message) == fix


def test_a_message_is_shown_without_its_fix_and_without_one_kubectl_is_the_way_out() -> None:
    """Nothing is said twice."""
    lists = {
        TENANT: [
            obj(TENANT, "a", status=said("Ready", "False", "R", "all is lost")),
            obj(TENANT, "b", status=said("Ready", "False", "R")),
        ]
    }
    one, other = map_of(seen(lists)).problems
    assert (one.told, one.fix) == ("all is lost", "kubectl describe tenants.tenantry.dev a")
    assert (other.told, other.fix) == ("it is wrong", "correct it")


def test_every_described_condition_is_one_that_a_function_writes() -> None:
    """The types in descriptors are those of the functions' own code; a misspelt one would hide what is wrong."""
    import importlib
    from pathlib import Path

    from tenantry.model.paas import names as paas_names
    from tenantry.serving.installed import descriptors

    for function in descriptors().values():
        package = Path(str(importlib.import_module(function.name.replace("-", "_")).__file__)).parent
        shared = Path(str(paas_names.__file__)).parents[1]
        text = "\n".join(
            each.read_text() for folder in (package, shared) for each in folder.rglob("*.py") if each.name != "descriptor.py"
        )
        for each in function.tells:
            assert f'"{each.type}"' in text, (function.name, each)


def test_what_is_wrong_in_a_namespace_that_may_not_be_read_is_told() -> None:
    """Without the right to list namespaces what was read is shown all the same, apart from the rest."""
    found = map_of(
        seen({PROJECT_HELM_CHART: [obj(PROJECT_HELM_CHART, "demo", "home", status=said("Stalled", "True", "HelmFailed"))]})
    )
    assert [(each.reason, each.people, each.namespaces) for each in found.problems] == [("HelmFailed", 0, 1)]
    assert [group.name for group in found.groups] == ["namespaces that could not be read"]


# -- what is kept --------------------------------------------------------------------------------------------------------


def test_of_an_object_only_what_is_shown_is_kept() -> None:
    """Large fields, other labels and data are gone after a page of a list; twice is as once."""
    chart = obj(
        HELM_CHART, "x", "y", labels={"a": "b", PROJECT_ID: "p"}, annotations={"other": "1"}, spec={"valuesContent": "x" * 1000}
    )
    small = kept(chart, frozenset({PROJECT_ID}))
    assert small == {**obj(HELM_CHART, "x", "y", labels={PROJECT_ID: "p"})} | {"metadata": small["metadata"]}
    assert small["metadata"] == {"name": "x", "namespace": "y", "labels": {PROJECT_ID: "p"}}
    assert kept(small, frozenset({PROJECT_ID})) == small


# -- how it is drawn -----------------------------------------------------------------------------------------------------


def test_without_unicode_everything_is_ascii() -> None:
    """Branches, marks, and what others wrote."""
    lines = drawn(project(), ("project", "p-a"), ASCII)
    assert "".join(lines).isascii()
    assert "|-- cattle-project-p-a (registration)" in lines
    assert lines[-2] == "`-- tools  x QuotaExceeded"
    assert printable("Zoë\x1b[2J", ASCII) == "Zo\\xeb\\x1b[2J"
    assert printable("Zoë\x1b[2J", UNICODE) == "Zoë\\x1b[2J"


def test_lines_are_as_wide_as_the_terminal() -> None:
    """What does not fit is cut with a sign; without a terminal nothing is."""
    assert [cut("abcdef", width, UNICODE) for width in (0, 6, 5)] == ["abcdef", "abcdef", "abcd…"]
    assert cut("abcdef", 5, ASCII) == "ab..."
    assert Line("x", "red").styled(0, UNICODE) == "\x1b[31mx\x1b[0m"


def test_what_could_not_be_read_is_the_first_line() -> None:
    """And nothing is called well then."""
    lines = [line.text for line in head_lines({"rolebindings": "no\x1b right"}, (), UNICODE)]
    assert lines[0].startswith("NOT ALL OF THE CLUSTER")
    assert lines[1] == "  rolebindings: no\\x1b right"
    empty = Map((), (), {"rolebindings": "no"}, (), 0, 0)
    assert [line.text for line in problem_lines(empty, NOW, UNICODE, 0)] == ["✓ no problems in what could be read"]


def test_a_screen_has_the_worst_and_counts_the_rest() -> None:
    """Of hundred problems twenty are on the screen, with where the others are."""
    tenants = [obj(TENANT, f"t{number:03}", status=said("Ready", "False", "R")) for number in range(100)]
    system = System((), None, "why", (GivenUp("f", "sweep", 503, 2, "t", HOSTILE),), 4, ("Broker b is not ready: x",))
    text = "\n".join(line.text for line in status_lines(map_of(seen({TENANT: tenants})), system, NOW, UNICODE, 80))
    assert text.count("✗ R: Tenant") == 20
    assert text.endswith("… and 80 more: `tenantry status -o json`")
    assert "backlog: unknown (why)" in text
    assert "dead letters: 1, 4 older ones dropped" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("text", ["", "x", "pod/a", "project/", "project/a/b"])
def test_a_target_is_a_type_and_a_name(text: str) -> None:
    """Anything else is refused with what to write."""
    with pytest.raises(ValueError, match="write project/NAME, paas/NAME, tenant/NAME, namespace/NAME"):
        parsed_target(text)


def test_what_the_cluster_says_is_no_markup() -> None:
    """A message with tags and control characters stays a text, in the page and in the picture."""
    lists = {TENANT: [obj(TENANT, "a", status=said("Ready", "False", "R", HOSTILE))]}
    map_ = map_of(seen(lists, unread={"x": HOSTILE}))
    page, picture = page_of(map_, NOW), picture_of(map_, NOW)
    assert "<img" not in page
    assert page.count("</script>") == 2
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])  # type: ignore[index]
    assert data["problems"][0]["told"] == HOSTILE
    assert len(list(ElementTree.fromstring(picture).iter())) > 5
    assert "<img" not in picture


def test_tenantry_is_there_when_a_kind_has_its_category() -> None:
    """Another system's CRDs of the same names do not count."""
    resource = {"resource": "projecthelmcharts", "responseKind": {"kind": "ProjectHelmChart"}}

    def discovery(*categories: str) -> Object:
        versions = [{"version": "v1", "resources": [{**resource, "categories": list(categories)}]}]
        return {"items": [{"metadata": {"name": "helm.cattle.io"}, "versions": versions}]}

    assert [has_ours(discovery(*each)) for each in ((), ("all",), ("all", "tenantry"))] == [False, False, True]


@pytest.mark.parametrize(("shell", "asks"), [("bash", "bash_complete"), ("zsh", "zsh_complete"), ("fish", "fish_complete")])
def test_each_shell_has_its_script(shell: str, asks: str) -> None:
    """The script asks the program itself, and is printed without asking whether that shell is here."""
    done = CliRunner().invoke(main, ["completion", shell], env={"PATH": "/nowhere"})
    assert (done.exit_code, done.stderr) == (0, "")
    assert f"_TENANTRY_COMPLETE={asks}" in done.stdout
    assert CliRunner().invoke(main, ["completion", "tcsh"]).exit_code == 2
