"""Which object shows whether a source may be used, and what `tenantry sources` refuses to ask (2.8)."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tenantry.cli import main
from tenantry.model.flux.access import NamedObject, references_of
from tenantry.model.flux.consumers import CONSUMERS, Consumer
from tenantry.model.flux.trying import TRIED_KINDS, TriedConsumer, consumer_of, named_in


def row_of(tried: TriedConsumer) -> Consumer:
    plural = f"{tried.kind.lower()}s".replace("ys", "ies")
    (found,) = [each for each in CONSUMERS if (each.group, each.resource) == (tried.group, plural)]
    return found


@pytest.mark.parametrize("kind", TRIED_KINDS)
def test_every_kind_of_source_has_a_consumer_that_reads_it(kind: str) -> None:
    """Its one reference is that source, and it needs a grant to read."""
    source = NamedObject(kind, "flux-system", "shared")
    tried = consumer_of(source)
    ((reference, named),) = references_of({"spec": tried.spec}, row_of(tried))
    assert (reference.access, named) == ("read", source)


def test_image_automation_writes_to_git_only() -> None:
    """And to nothing else."""
    source = NamedObject("GitRepository", "flux-system", "shared")
    tried = consumer_of(source, writes=True)
    ((reference, named),) = references_of({"spec": tried.spec}, row_of(tried))
    assert (reference.access, named) == ("write", source)
    with pytest.raises(ValueError, match="only a GitRepository"):
        consumer_of(NamedObject("Bucket", "a", "b"), writes=True)


def test_an_account_is_named_where_objects_have_one() -> None:
    """An ImagePolicy has none."""
    for kind, there in (("GitRepository", True), ("HelmRepository", True), ("HelmChart", True), ("ImageRepository", False)):
        assert ("serviceAccountName" in consumer_of(NamedObject(kind, "a", "b"), account="flux").spec) == there


def test_sources_are_named_as_in_denials() -> None:
    """In whatever case the kind is; all else is told."""
    assert named_in("gitrepository/a/b.c") == NamedObject("GitRepository", "a", "b.c")
    for wrong in ("", "GitRepository", "GitRepository/a", "GitRepository/a/b/c", "Secret/a/b", "Bucket//b", "Bucket/a/"):
        with pytest.raises(ValueError, match="KIND/NAMESPACE/NAME"):
            named_in(wrong)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--try", "GitRepository/a/b"], "--namespace"),
        (["-n", "A"], "no name"),
        (["-n", "a", "--try", "Secret/a/b"], "KIND/NAMESPACE/NAME"),
        (["-n", "a", "--try", "Bucket/a/b", "--write"], "only a GitRepository"),
        (["-n", "a", "--write"], "for --try"),
    ],
)
def test_wrong_input_is_one_line(arguments: list[str], words: str) -> None:
    """Nothing on stdout, and no cluster is asked."""
    result = CliRunner().invoke(main, ["sources", *arguments])
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert words in result.stderr


@pytest.mark.parametrize("command", [["audit"], ["sources", "-n", "a"], ["sources", "-n", "a", "--try", "Bucket/a/b"]])
def test_no_answer_is_not_the_answer_no(command: list[str], tmp_path: Path) -> None:
    """Exit code 2, and one line on stderr."""
    result = CliRunner().invoke(main, [*command, "--kubeconfig", str(tmp_path / "none")])
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert str(tmp_path / "none") in result.stderr
