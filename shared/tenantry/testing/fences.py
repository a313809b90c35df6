"""The lists of fences against what the tests wrote: an entry that no test used, or one that is lacking, is a `Finding`.

A fence is in force while the tests run.  So what was written its lists allow, as they are in the file or as the configuration of
that test made them; what lacks was refused.  `rewritten` changes the lists in the text itself, so comments stay.

    python -m tenantry.testing.fences            write knative/fences/policy.yaml, the one policy that all fences are installed as
    python -m tenantry.testing.fences --verify   exit 1 when it is not what the fences give
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from tenantry.local.deployment import deployment_folder
from tenantry.local.fences import fence_files, fence_policies
from tenantry.local.readable import readable
from tenantry.model.config import Config
from tenantry.testing.finding import Finding
from tenantry.testing.writes import LISTS, Written

_NAME = re.compile(r"    - name: (\w+)")
_ENTRY = re.compile(r'( +)"([^"]*)",')
_INDENT = " " * 10


@dataclass(frozen=True, slots=True)
class Line:
    """One entry of a list of a fence; ``line`` counts from one."""

    list: str
    value: str
    line: int


def entries(text: str) -> list[Line]:
    """The entries of all lists of a fence that are written one for each line."""
    return [Line(name, found[2], number) for name, number, line in _inside(text) if (found := _ENTRY.match(line))]


def _inside(text: str) -> Iterator[tuple[str, int, str]]:
    """(list, line, text) of every line between the brackets of a list; the closing bracket too."""
    name, within = "", False
    for number, line in enumerate(text.splitlines(), 1):
        if found := _NAME.fullmatch(line):
            name = found[1]
        elif line.strip() == "[":
            within = True
        elif within:
            yield name, number, line
            within = line.strip() != "]"


def judge(function: str, text: str, written: Collection[Written], refused: Collection[Written] = ()) -> list[Finding]:
    """What is wrong with the lists of a fence, given what its function wrote and what its fence refused it."""
    idle, lacking = _sorted_out(function, text, written, refused)
    found = [Finding(each.line, f'no test wrote "{each.value}" of the list {each.list}', "") for each in idle]
    ends = {name: number for name, number, line in _inside(text) if line.strip() == "]"}
    for name, value in lacking:
        found.append(Finding(ends.get(name, 1), f'the list {name} lacks "{value}"', f'a further line: "{value}",'))
    return sorted(found, key=lambda finding: finding.line)


def rewritten(function: str, text: str, written: Collection[Written], refused: Collection[Written] = ()) -> str:
    """The fence with exactly the entries that were used or found lacking; comments stay with their entries."""
    idle, lacking = _sorted_out(function, text, written, refused)
    gone = {each.line for each in idle}
    ends = {number: name for name, number, line in _inside(text) if line.strip() == "]"}
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        lines += [f'{_INDENT}"{value}",' for name, value in lacking if ends.get(number) == name]
        lines += [line] if number not in gone else []
    return "\n".join(lines) + "\n"


def _sorted_out(
    function: str, text: str, written: Collection[Written], refused: Collection[Written]
) -> tuple[list[Line], list[tuple[str, str]]]:
    """The entries that nothing used, and what is lacking: refused, not in the file, not allowed by some configuration either."""
    used = {(each.list, each.value) for each in written if each.function == function}
    wanted = {(each.list, each.value) for each in refused if each.function == function}
    found = entries(text)
    idle = [each for each in found if (function, each.list) in LISTS and (each.list, each.value) not in used | wanted]
    return idle, sorted(wanted - used - {(each.list, each.value) for each in found})


def judge_all(written: Collection[Written], refused: Collection[Written], folder: Path | None = None) -> list[str]:
    """The findings of all fences, each with its file."""
    return [
        f"knative/{function}/{path.name}, {finding}"
        for function, path in fence_files(folder).items()
        for finding in judge(function, path.read_text(), written, refused)
    ]


def rewrite_all(written: Collection[Written], refused: Collection[Written], folder: Path | None = None) -> list[Path]:
    """Write the lists of all fences whose functions wrote anything at all; returns the files that changed."""
    changed: list[Path] = []
    for function, path in fence_files(folder).items():
        text = path.read_text()
        known = any(each.function == function for each in written)
        if known and (better := rewritten(function, text, written, refused)) != text:
            path.write_text(better)
            changed.append(path)
    return changed


_HEAD = """\
# Generated by `make fences` from the fences beside each identity's rights (*/fence.yaml): edit those. docs/fences.md.
# One policy, since the API server converts every write of anybody once for each policy that looks at it.
"""


def policy_text() -> str:
    """``knative/fences/policy.yaml`` as the fences give it."""
    return _HEAD + readable(fence_policies(Config()), width=120, folds=True)


def rewrite_policy(*, verify: bool = False) -> list[Path]:
    """Write ``knative/fences/policy.yaml``; the file if it changed, or with ``verify`` would change."""
    path = deployment_folder("knative") / "fences" / "policy.yaml"
    wanted = policy_text()
    if path.is_file() and path.read_text() == wanted:
        return []
    if not verify:
        path.write_text(wanted)
    return [path]


def main(arguments: list[str]) -> int:
    """Write the policy, or verify that it is as it would be written."""
    verify = "--verify" in arguments
    if changed := rewrite_policy(verify=verify):
        sys.stdout.write(f"{'run make fences, which changes' if verify else 'written:'} {changed[0]}\n")
    return 1 if verify and changed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
