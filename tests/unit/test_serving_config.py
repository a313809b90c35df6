"""Reading the configuration file: what is right is taken as it is, what is wrong is named with its path."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from textwrap import dedent

import pytest

from tenantry.model.config import Config, RepoChart
from tenantry.serving.config import CONFIG_VARIABLE, ConfigError, load_config, parse_config

LOCKER = "enabled, failedGraceSeconds, interruptedGraceSeconds)"
CATTLE = "projectLabel, clusterId, systemProjectId, systemDefaultRegistry, url)"
CHART = "helmProjectOperator: {charts: [{helmApiVersion: a.b/v1, releaseName: r, %s}]}"

KEYS = "global, helmProjectOperator, scopeBinding, flux, decisions"


def refusal(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_config(dedent(text), "file")
    return str(caught.value).splitlines()


def one(text: str) -> str:
    """Return the only line of a refusal, without the name of the file."""
    lines = refusal(text)
    assert len(lines) == 1, lines
    return lines[0].removeprefix("file: ")


@pytest.mark.parametrize("text", ["", "---\n", "# nothing\n", "{}", "global: {}\nhelmProjectOperator: {}"])
def test_an_empty_file_means_the_defaults(text: str) -> None:
    """Nothing given, nothing changed."""
    assert parse_config(text) == Config()


def test_the_names_of_the_documents() -> None:
    """The value names of the Helm Project Operator's chart are understood."""
    config = parse_config(
        dedent("""
        global: {cattle: {projectLabel: team/project, clusterId: c-1, systemProjectId: p-sys, url: https://x}}
        helmProjectOperator:
          systemNamespace: ops
          otherSystemProjectLabelValues: [p-denied]
          projectReleaseNamespaces: {enabled: false}
          releaseRoleBindings: {aggregate: false, clusterRoleRefs: {admin: boss}}
          hardenedNamespaces:
            configuration:
              serviceAccountSpec: {automountServiceAccountToken: true, imagePullSecrets: [{name: pull}]}
              networkPolicySpec: {ingress: [{}]}
          helmLocker: {enabled: false}
          valuesOverride: {any: {thing: [1, null]}}
          charts:
          - {helmApiVersion: a.b/v1, releaseName: a, singleton: true, chart: charts/a, valuesOverride: {x: 1}}
          - {helmApiVersion: c.d/v1, releaseName: a, chart: {repo: https://r, name: n, version: 1.2.3}}
          - {helmApiVersion: e.f/v1, releaseName: a, chart: null}
        """)
    )
    operator = config.helm_project_operator
    assert (config.project_label, config.release_project_id) == ("team/project", "")
    assert config.denied_project_ids == {"p-sys", "p-denied"}
    assert [chart.chart for chart in operator.charts] == [
        PurePosixPath("charts/a"),
        RepoChart(repo="https://r", name="n", version="1.2.3"),
        None,
    ]
    assert operator.release_role_bindings.cluster_role_refs.admin == "boss"
    assert operator.release_role_bindings.cluster_role_refs.view == "view"
    hardening = operator.hardened_namespaces.configuration
    assert hardening.service_account_spec.automount_service_account_token
    assert hardening.service_account_spec.image_pull_secrets[0].name == "pull"
    assert hardening.network_policy_spec == {"ingress": [{}]}
    assert operator.values_override == {"any": {"thing": [1, None]}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("globl: {}", f"globl: unknown key; did you mean global? (allowed here: {KEYS})"),
        (
            "global: {cattle: {projectLabl: x}}",
            "global.cattle.projectLabl: unknown key; did you mean projectLabel? (allowed here: " + CATTLE,
        ),
        ("global: {cattle: {zzz: x}}", "global.cattle.zzz: unknown key (allowed here: " + CATTLE),
        (
            "helmProjectOperator: {helmLocker: {enable: true}}",
            "helmProjectOperator.helmLocker.enable: unknown key; did you mean enabled? (allowed here: " + LOCKER,
        ),
        (
            "global_: {}",
            f"global_: unknown key; did you mean global? (allowed here: {KEYS})",
        ),
        ("global: {cattle: {url: x, 7: x}}", "global.cattle[7]: Keys should be strings (given: 7)"),
    ],
)
def test_unknown_keys(text: str, message: str) -> None:
    """An unknown key is named with its path, the nearest key and all that are allowed there."""
    assert one(text) == message


def test_python_names_are_unknown_keys() -> None:
    """Only the names of the documents are keys; our own field names are not."""
    assert one("helmProjectOperator: {system_namespace: x}").startswith(
        "helmProjectOperator.system_namespace: unknown key; did you mean systemNamespace?"
    )
    assert one("global: {cattle: {project_label: x}}").startswith("global.cattle.project_label: unknown key")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("global:", "global: Input should be a valid dictionary or instance of Global (given: None)"),
        ("global: {cattle: {clusterId: 5}}", "global.cattle.clusterId: Input should be a valid string (given: 5)"),
        ("global: {cattle: {projectLabel: 'a b'}}", "global.cattle.projectLabel: 'a b' is not a label key such as field"),
        ("global: {cattle: {systemProjectId: 'a b'}}", "global.cattle.systemProjectId: 'a b' is not a label value"),
    ],
)
def test_wrong_values(text: str, message: str) -> None:
    """A wrong value is named with its path and what was given; nothing is guessed."""
    assert one(text).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("projectReleaseNamespaces: {labelValue: 'a b'}", "projectReleaseNamespaces.labelValue: 'a b' is not a label value"),
        ("helmLocker: {enabled: 'off'}", "helmLocker.enabled: Input should be a valid boolean (given: 'off')"),
        ("helmLocker: {enabled: 1}", "helmLocker.enabled: Input should be a valid boolean (given: 1)"),
        ("systemNamespace: 'Foo Bar'", "systemNamespace: 'Foo Bar' is not a DNS label"),
        ("systemNamespace: ''", "systemNamespace: '' is not a DNS label"),
        ("systemNamespaces: kube-system", "systemNamespaces: Input should be a valid tuple (given: 'kube-system')"),
        ("systemNamespaces: [a, 1]", "systemNamespaces[1]: Input should be a valid string (given: 1)"),
        ("valuesOverride: {1: 2}", "valuesOverride[1]: Input should be a valid string (given: 1)"),
        ("namespaceLabels: {team: true}", "namespaceLabels.team: Input should be a valid string (given: True)"),
        ("namespaceLabels: {'a b': x}", "namespaceLabels.a b: 'a b' is not a label key"),
        ("namespaceLabels: {helm.cattle.io/projectId: x}", "namespaceLabels may not set helm.cattle.io/projectId"),
        ("charts: []", "charts: Tuple should have at least 1 item after validation, not 0"),
        ("charts: [{releaseName: r}]", "charts[0].helmApiVersion: required, and not given"),
        ("charts: [{releaseName: R, helmApiVersion: a/v1}]", "charts[0].releaseName: 'R' is not a DNS label"),
        ("charts: [{releaseName: r, helmApiVersion: v1}]", "charts[0].helmApiVersion: 'v1' is not a group and version"),
        *(
            (f"charts: [{{releaseName: r, helmApiVersion: '{wrong}'}}]", f"charts[0].helmApiVersion: '{wrong}' is not a group")
            for wrong in (
                "a..b/v1",
                "a-.b/v1",
                "a.-b/v1",
                "a./v1",
                "a.b/v1-",
                f"a.b/{'v' * 64}",
                "A.b/v1",
                "a.b/v1/x",
                "a_b/v1",
                "/v1",
            )
        ),
        (
            f"charts: [{{releaseName: r, helmApiVersion: {'a' * 30}.{'b' * 33}/v1}}]",
            f"charts[0].helmApiVersion: '{'a' * 30}.{'b' * 33}/v1': the part before the slash has 64 characters",
        ),
        (
            "charts: [{releaseName: r, helmApiVersion: kube-root-ca/crt}]",
            "charts[0].helmApiVersion: 'kube-root-ca/crt': the chart's ConfigMap would be called kube-root-ca.crt",
        ),
        (
            f"charts: [{{releaseName: {'r' * 49}, helmApiVersion: a/v1}}]",
            f"charts[0].releaseName: '{'r' * 49}' has 49 characters, and at most 48 leave room",
        ),
        ("namespaceLabels: {a..b/c: x}", "namespaceLabels.a..b/c: 'a..b/c' is not a label key"),
        (
            "charts: [{releaseName: r, helmApiVersion: a/v1}, {releaseName: s, helmApiVersion: a/v1}]",
            "charts: two charts have the same helmApiVersion: each needs its own",
        ),
        (
            "charts: [{helmApiVersion: a.b/v1, releaseName: r, chart: 5}]",
            "charts[0].chart: must be the path of a folder or .tgz, or a mapping with repo, name and version (given: 5)",
        ),
        ("charts: [{helmApiVersion: a.b/v1, releaseName: r, chart: ''}]", "charts[0].chart: must be the path"),
        ("charts: [{helmApiVersion: a.b/v1, releaseName: r, chart: [a]}]", "charts[0].chart: must be the path"),
        (
            "charts: [{helmApiVersion: a.b/v1, releaseName: r, chart: {repo: x, name: y, version: 1.2}}]",
            "charts[0].chart.version: Input should be a valid string (given: 1.2)",
        ),
    ],
)
def test_wrong_values_of_the_operator(text: str, message: str) -> None:
    """The same below helmProjectOperator, in sections, lists, maps and the forms of a chart."""
    assert one(f"helmProjectOperator: {{{text}}}").startswith(f"helmProjectOperator.{message}")


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ("repo: x, name: y", ["version"]),
        ("name: y", ["repo", "version"]),
        ("repo: x, version: v", ["name"]),
        ("", ["repo", "name", "version"]),
    ],
)
@pytest.mark.check("hpo-54")
def test_a_chart_reference_is_whole(given: str, missing: list[str]) -> None:
    """Of repo, name and version, those that are missing are named, and nothing else is said."""
    lines = refusal(CHART % f"chart: {{{given}}}")
    assert lines == [f"file: helmProjectOperator.charts[0].chart.{name}: required, and not given" for name in missing]


def test_unknown_keys_inside_lists() -> None:
    """Keys of a chart reference and of a list entry are checked and suggested too."""
    assert one(CHART % "chart: {repo: x, name: y, version: v, naem: z}") == (
        "helmProjectOperator.charts[0].chart.naem: unknown key; did you mean name? (allowed here: repo, name, version)"
    )
    secrets = "helmProjectOperator: {hardenedNamespaces: {configuration: {serviceAccountSpec: {secrets: [{name: a, nam: x}]}}}}"
    assert one(secrets) == (
        "helmProjectOperator.hardenedNamespaces.configuration.serviceAccountSpec.secrets[0].nam: unknown key; "
        "did you mean name? (allowed here: name)"
    )


def test_every_problem_is_told_at_once() -> None:
    """One line for each problem, each once, so that one look is enough."""
    lines = refusal("global: {cattle: {clusterId: 5, foo: 1}}\nhelmProjectOperator: {controllerName: []}")
    assert len(lines) == 3
    assert all(line.startswith("file: ") for line in lines)
    assert lines[2] == "file: helmProjectOperator.controllerName: Input should be a valid string"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("global: {}\nglobal: {}", "line 2: key 'global' is given twice"),
        ("global:\n  cattle:\n    url: a\n    url: b", "line 4: key 'url' is given twice"),
        ("? [a]\n: b", "line 1: a key must be plain text"),
        ("? {a: 1}\n: b", "line 1: a key must be plain text"),
        ("- a", f"the file must be a mapping with the keys {KEYS}"),
        ("text", f"the file must be a mapping with the keys {KEYS}"),
    ],
)
def test_files_of_the_wrong_form(text: str, message: str) -> None:
    """A key given twice, a key that is no text, and a file that is no mapping are refused."""
    assert one(text) == message


@pytest.mark.parametrize(
    "text", ["a: b: c", "a: [", "--- a\n--- b\n", "!!python/object:os.system x", "a: 2024-13-45", "\0", "? 2024-13-45\n: x"]
)
def test_files_that_are_not_yaml(text: str) -> None:
    """What YAML cannot read is said to be that, on one line."""
    assert one(text).startswith("file is not YAML: ")


def test_merge_keys() -> None:
    """YAML's ``<<`` works, and what it brings in may be overridden."""
    config = parse_config(
        dedent("""
        helmProjectOperator:
          helmLocker: &off {enabled: false}
          helmController: {<<: *off}
          releaseRoleBindings:
            clusterRoleRefs: {<<: {admin: a, edit: e}, edit: mine}
        """)
    )
    operator = config.helm_project_operator
    roles = operator.release_role_bindings.cluster_role_refs
    assert not operator.helm_controller.enabled
    assert (roles.admin, roles.edit) == ("a", "mine")


def test_the_variable_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path comes from TENANTRY_CONFIG; an argument comes before it; without both the defaults hold."""
    named, given = tmp_path / "named.yaml", tmp_path / "given.yaml"
    named.write_text("global: {cattle: {clusterId: named}}")
    given.write_text("global: {cattle: {clusterId: gegeben-ü}}", encoding="utf-8")
    monkeypatch.delenv(CONFIG_VARIABLE, raising=False)
    assert load_config() == Config()
    monkeypatch.setenv(CONFIG_VARIABLE, str(named))
    assert load_config().global_.cattle.cluster_id == "named"
    assert load_config(given).global_.cattle.cluster_id == "gegeben-ü"


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing file, a folder and bytes that are no text stop the start with the path in the message."""
    missing, binary = tmp_path / "missing.yaml", tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\xfa")
    monkeypatch.setenv(CONFIG_VARIABLE, str(missing))
    with pytest.raises(ConfigError, match=rf"cannot read the configuration {missing}: No such file.*correct {CONFIG_VARIABLE}"):
        load_config()
    with pytest.raises(ConfigError, match="Is a directory"):
        load_config(tmp_path)
    with pytest.raises(ConfigError, match=f"{binary}: it is not UTF-8 text"):
        load_config(binary)


def test_problems_of_a_file_name_the_file(tmp_path: Path) -> None:
    """The path of the file stands before each problem."""
    path = tmp_path / "c.yaml"
    path.write_text("globl: {}")
    with pytest.raises(ConfigError, match=f"^{path}: globl: unknown key"):
        load_config(path)
