"""A function that another distribution brings, and a unit that one of ours gets: folders, and all else takes it from there."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from people import FUNCTION, registration
from people import LABEL as PROJECT_LABEL
from times import LEFT_TO_MAKE_WHOLE, START_S
from upping import ROOT, run_up, uninstall

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.deployment import deployment_folder
from tenantry.local.manifests import load
from tenantry.model.difference import owns
from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, LEASE, NAMESPACE, SERVICE_ACCOUNT, Object
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.testing import eventually
from tenantry.testing.objects import obj

NAME, LABEL, PLACE = "greeting", "greeting.example.com/to", "hall"
HELD = "greeting.example.com/held"
UNIT = {
    "__init__.py": "",
    "descriptor.py": f'''
from PACKAGE import NAME
from tenantry.model.descriptor import Command, EventsOf, Finalizer, Part, Product, Service, Source, Trigger, Watch
from tenantry.model.kinds import LEASE, NAMESPACE

LABEL, HELD = "{LABEL}", "{HELD}"
GREETINGS = Service(
    NAME,
    NAME,
    sources=(Source(f"{{NAME}}-halls", (Watch(NAMESPACE, LABEL),)), Source(f"{{NAME}}-leases", (Watch(LEASE, LABEL),))),
    triggers=(Trigger(f"{{NAME}}-objects", (EventsOf(NAMESPACE, NAME), EventsOf(LEASE, NAME))),),
    reads=(NAMESPACE,),
    writes=(LEASE,),
    finalizers=(Finalizer(LEASE, HELD),),
)
part = Part(GREETINGS, makes=(Product(LEASE, LABEL),), commands=(Command("greet", "PACKAGE.greetings.command", "Say hello."),))
''',
    "unit.py": """
from PACKAGE.greetings.descriptor import HELD, LABEL
from tenantry.engine import Handler, Owner, Unit
from tenantry.engine.snapshot import Prefetch
from tenantry.model.kinds import LEASE, NAMESPACE, is_terminating, labels_of
from tenantry.model.plan import NOTHING, Apply, Plan, RemoveFinalizers

HALL = "hall"


async def observe(owner, reader):
    return await reader.get(NAMESPACE, owner.name), await reader.get(LEASE, "greeting", owner.name)


def plan(observed):
    namespace, live = observed
    guest = labels_of(namespace).get(LABEL)
    if not guest:
        return NOTHING
    if is_terminating(live):
        return Plan(((RemoveFinalizers(LEASE, live, (HELD,)),),))
    place = {"name": "greeting", "namespace": namespace["metadata"]["name"]}
    metadata = {**place, "labels": {LABEL: guest}, "finalizers": [HELD]}
    spec = {"holderIdentity": f"hello, {guest}"}
    wanted = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec}
    return Plan(((Apply(LEASE, wanted, live),),))


class Greetings(Unit):
    name = "greetings"
    kinds = frozenset({NAMESPACE, LEASE})
    handlers = {HALL: Handler(observe=observe, plan=plan)}

    async def owners(self, key, hint, reader):
        return [[Owner(HALL, key.name if key.kind == "Namespace" else key.namespace)]]

    def prefetch(self):
        return [Prefetch(NAMESPACE, ((LABEL, ""),)), Prefetch(LEASE, ((LABEL, ""),))]

    async def sweep(self, reader):
        return [Owner(HALL, found["metadata"]["name"]) for found in await reader.list(NAMESPACE, labels={LABEL: ""})]


def made(settings):
    return Greetings()
""",
    "command.py": '''
import click


@click.command()
def greet():
    """Say hello."""
    click.echo("hello")
''',
}
"""A unit, as the files of its folder in the package of a function."""
FILES = {
    "greeting/__init__.py": f'NAME = "{NAME}"',
    "greeting/descriptor.py": """
from tenantry.model.descriptor import described_by

descriptor = described_by("greeting", "11-59/20 * * * *")
""",
    "greeting/function.py": """
from greeting.descriptor import descriptor
from tenantry.serving import Function

function = Function(descriptor)
""",
    "greeting/main.py": """
import functions_framework.aio
from greeting.function import function

handle = functions_framework.aio.http(function.handle)
""",
    "greeting-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n",
    "greeting-1.0.dist-info/entry_points.txt": f"[tenantry.functions]\n{NAME} = greeting.descriptor:descriptor\n",
}

pytestmark = pytest.mark.timeout(240)


def write(files: dict[str, str], folder: Path) -> None:
    """Write texts by the paths of their files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def unit_of(package: str) -> dict[str, str]:
    """The unit in the package of a function, by paths."""
    return {f"{package}/greetings/{name}": text.replace("PACKAGE", package) for name, text in UNIT.items()}


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of a process in which the function is installed."""
    write({**FILES, **unit_of("greeting")}, tmp_path)
    return {"PYTHONPATH": str(tmp_path), "TENANTRY_HOME": str(tmp_path / "home")}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of our source tree."""
    for name in ("shared", "functions", "knative", "triggers"):
        shutil.copytree(ROOT / name, tmp_path / "tree" / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "tree"


async def run(installed: dict[str, str], *command: str) -> str:
    """The output of Python, which must succeed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *command),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **installed},
        cwd=ROOT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 90)
    assert process.returncode == 0, output.decode()
    return output.decode()


async def greeted(admin: Api, guest: str, by: str = NAME) -> Object:
    """The greeting, when it is there and the function's."""

    async def found() -> Object | None:
        live = await admin.get(LEASE, "greeting", PLACE)
        said = live is not None and live["spec"] == {"holderIdentity": f"hello, {guest}"} and owns(live, f"tenantry-{by}", "spec")
        return live if said else None

    return await eventually(found, within=START_S, what=f"a greeting to {guest}")


async def test_its_command_and_its_manifests_follow_from_it(installed: dict[str, str], tmp_path: Path) -> None:
    """`tenantry --help` shows the command; the manifests that it would be shipped with can be played, ours stay as they are."""
    assert "greet" in await run(installed, "-m", "tenantry.cli", "--help")
    assert await run(installed, "-m", "tenantry.cli", "greet") == "hello\n"
    assert await run(installed, "-m", "tenantry.local.manifest_files", "--verify") == ""

    code = (
        "import sys; from pathlib import Path; from tenantry.serving.installed import descriptor_of;"
        "from tenantry.local.manifest_files import rewrite; rewrite([descriptor_of(sys.argv[1])], Path(sys.argv[2]))"
    )
    await run(installed, "-c", code, NAME, str(tmp_path / "made"))
    names = {str(path.relative_to(tmp_path / "made")) for path in (tmp_path / "made").rglob("*.yaml")}
    folder = f"knative/{NAME}"
    assert names == {
        *(f"triggers/{each}.yaml" for each in (NAME, "kustomization")),
        "knative/base/source-rights.yaml",
        f"knative/overlays/deployment/{NAME}.yaml",
        *(f"{folder}/{each}.yaml" for each in ("kustomization", "rights", "service", "serviceaccount")),
    }
    listed = yaml.safe_load((tmp_path / f"made/{folder}/kustomization.yaml").read_text())["resources"]
    assert listed == ["rights.yaml", "service.yaml", "serviceaccount.yaml"]
    played = load(deployment_folder("knative") / "base" / "broker.yaml", tmp_path / "made" / "triggers")
    assert {trigger.name for trigger in played.triggers} == {"greeting-objects", "greeting-sweep", "greeting-requested"}
    assert [source.service_account_name for source in played.sources] == ["tenantry-source-greeting"] * 2
    assert [ping.name for ping in played.pings] == ["greeting-sweep"]


@LEFT_TO_MAKE_WHOLE
async def test_it_is_played_and_taken_out_again(installed: dict[str, str], tmp_path: Path) -> None:
    """`tenantry up` serves it beside one of ours under an identity of its own; `tenantry uninstall` leaves nothing of it.

    Its finalizer is taken off: else the greeting would be there for ever.
    """
    functions = ("--function", NAME, "--function", FUNCTION)
    with ControlPlane(ephemeral=True) as plane:
        async with await Api.connect(field_manager="tests-admin", kubeconfig=plane.kubeconfig) as admin:
            await admin.create(NAMESPACE, obj(NAMESPACE, PLACE, labels={LABEL: "alice"}))
            async with run_up(tmp_path / "home", "--kubeconfig", str(plane.kubeconfig), *functions, **installed) as up:
                await up.says("Ready.")
                live = await greeted(admin, "alice")
                await admin.delete(LEASE, "greeting", PLACE, uid=live["metadata"]["uid"])
                await greeted(admin, "alice")
                await admin.apply(NAMESPACE, obj(NAMESPACE, PLACE, labels={LABEL: "bob"}), force=True)
                assert (await greeted(admin, "bob"))["metadata"]["finalizers"] == [HELD]
                await uninstall(plane.kubeconfig, **installed)
                assert await up.ends() == 0, "\n".join(up.lines)
            assert not [line for line in up.lines if "Traceback" in line or "dead letter:" in line], "\n".join(up.lines)
            assert await admin.get(LEASE, "greeting", PLACE) is None
            for kind in (CLUSTER_ROLE, CLUSTER_ROLE_BINDING, SERVICE_ACCOUNT):
                left = (await admin.list(kind, SYSTEM_NAMESPACE if kind == SERVICE_ACCOUNT else "")).items
                assert [each["metadata"]["name"] for each in left if NAME in each["metadata"]["name"]] == []


@LEFT_TO_MAKE_WHOLE
async def test_a_unit_is_a_folder(tree: Path, tmp_path: Path) -> None:
    """One of our functions gets a unit: its folder is the only thing that is written by hand; `make manifests` does the rest, but
    for the rights, which `make rights` would add.  The unit is served with those of the function, and its command is there."""
    package = FUNCTION.replace("-", "_")
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    write(unit_of(package), tree / "functions")
    environment = {
        "PYTHONPATH": os.pathsep.join(str(tree / each) for each in ("shared", "functions")),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    await run(environment, "-m", "tenantry.local.manifest_files")
    changed = {str(path.relative_to(tree)) for path, content in before.items() if path.read_bytes() != content}
    assert changed == {f"triggers/{FUNCTION}.yaml", "knative/base/source-rights.yaml"}
    new = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file() and path not in before}
    assert new == {f"functions/{name}" for name in unit_of(package)}
    assert await run(environment, "-m", "tenantry.cli", "greet") == "hello\n"

    rights = tree / f"knative/{FUNCTION}/rights.yaml"
    rule = "rules:\n  - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list, create, patch]}\n"
    rights.write_text(rights.read_text().replace("rules:\n", rule, 1))
    with ControlPlane(ephemeral=True) as plane:
        async with await Api.connect(field_manager="tests-admin", kubeconfig=plane.kubeconfig) as admin:
            await admin.create(NAMESPACE, obj(NAMESPACE, PLACE, labels={LABEL: "alice"}))
            options = ("--kubeconfig", str(plane.kubeconfig), "--function", FUNCTION)
            async with run_up(tmp_path / "home", *options, **environment) as up:
                await up.says("Ready.")
                await greeted(admin, "alice", FUNCTION)
                await admin.apply(NAMESPACE, obj(NAMESPACE, PLACE, labels={LABEL: "bob"}), force=True)
                await greeted(admin, "bob", FUNCTION)
                await admin.apply(NAMESPACE, obj(NAMESPACE, f"{PLACE}-2", labels={PROJECT_LABEL: "p-hall"}))
                await eventually(lambda: admin.get(NAMESPACE, registration("p-hall")), within=START_S)
            assert not [line for line in up.lines if "Traceback" in line or "dead letter:" in line], "\n".join(up.lines)
