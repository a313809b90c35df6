"""A function that another distribution brings: a folder with a descriptor and a unit, and everything else takes it from there."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
import yaml
from people import FUNCTION
from times import START_S
from upping import ROOT, run_up, uninstall

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.deployment import deployment_folder
from tenantry.local.manifests import load
from tenantry.model.difference import owns
from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CONFIG_MAP, NAMESPACE, SERVICE_ACCOUNT, Object
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.testing import eventually
from tenantry.testing.objects import obj

NAME, LABEL, PLACE = "greeting", "greeting.example.com/to", "hall"
HELD = "greeting.example.com/held"
FILES = {
    "greeting/__init__.py": "",
    "greeting/descriptor.py": f'''
from tenantry.model.descriptor import Command, Descriptor, Finalizer, EventsOf, Product, Service, Source, Trigger, Watch
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE

NAME, LABEL, HELD = "{NAME}", "{LABEL}", "{HELD}"
GREETINGS = Service(
    NAME,
    NAME,
    sources=(Source("greeting-cluster", (Watch(NAMESPACE, LABEL),)), Source("greeting-owned", (Watch(CONFIG_MAP, LABEL),))),
    triggers=(Trigger("greeting-objects", (EventsOf(NAMESPACE, NAME), EventsOf(CONFIG_MAP, NAME))),),
    reads=(NAMESPACE,),
    writes=(CONFIG_MAP,),
    finalizers=(Finalizer(CONFIG_MAP, HELD),),
)
descriptor = Descriptor(
    (GREETINGS,),
    "11-59/20 * * * *",
    makes=(Product(CONFIG_MAP, LABEL),),
    commands=(Command("greet", "greeting.command", "Say hello."),),
)
''',
    "greeting/unit.py": """
from greeting.descriptor import HELD, LABEL
from tenantry.engine import Handler, Owner, Unit
from tenantry.engine.snapshot import Prefetch
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, is_terminating, labels_of
from tenantry.model.plan import NOTHING, Apply, Plan, RemoveFinalizers

HALL = "namespace"


async def observe(owner, reader):
    return await reader.get(NAMESPACE, owner.name), await reader.get(CONFIG_MAP, "greeting", owner.name)


def plan(observed):
    namespace, live = observed
    guest = labels_of(namespace).get(LABEL)
    if not guest:
        return NOTHING
    if is_terminating(live):
        return Plan(((RemoveFinalizers(CONFIG_MAP, live, (HELD,)),),))
    place = {"name": "greeting", "namespace": namespace["metadata"]["name"]}
    metadata = {**place, "labels": {LABEL: guest}, "finalizers": [HELD]}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": f"hello, {guest}"}}
    return Plan(((Apply(CONFIG_MAP, body, live),),))


class Greetings(Unit):
    name = "greetings"
    kinds = frozenset({NAMESPACE, CONFIG_MAP})
    handlers = {HALL: Handler(observe=observe, plan=plan)}

    async def owners(self, key, hint, reader):
        return [[Owner(HALL, key.name if key.kind == "Namespace" else key.namespace)]]

    def prefetch(self):
        return [Prefetch(NAMESPACE, ((LABEL, ""),)), Prefetch(CONFIG_MAP, ((LABEL, ""),))]

    async def sweep(self, reader):
        return [Owner(HALL, found["metadata"]["name"]) for found in await reader.list(NAMESPACE, labels={LABEL: ""})]
""",
    "greeting/function.py": """
from greeting.descriptor import descriptor
from greeting.unit import Greetings
from tenantry.serving import Function

function = Function(descriptor, lambda settings: [Greetings()])
""",
    "greeting/main.py": """
import functions_framework.aio
from greeting.function import function

handle = functions_framework.aio.http(function.handle)
""",
    "greeting/command.py": '''
import click


@click.command()
def greet():
    """Say hello."""
    click.echo("hello")
''',
    "greeting-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n",
    "greeting-1.0.dist-info/entry_points.txt": f"[tenantry.functions]\n{NAME} = greeting.descriptor:descriptor\n",
}

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of a process in which the function is installed."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return {"PYTHONPATH": str(tmp_path), "TENANTRY_HOME": str(tmp_path / "home")}


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


async def greeted(admin: Api, guest: str) -> Object:
    """The greeting, when it is there and ours."""

    async def found() -> Object | None:
        live = await admin.get(CONFIG_MAP, "greeting", PLACE)
        said = live is not None and live["data"] == {"text": f"hello, {guest}"} and owns(live, f"tenantry-{NAME}", "data")
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
                await admin.delete(CONFIG_MAP, "greeting", PLACE, uid=live["metadata"]["uid"])
                await greeted(admin, "alice")
                await admin.apply(NAMESPACE, obj(NAMESPACE, PLACE, labels={LABEL: "bob"}), force=True)
                assert (await greeted(admin, "bob"))["metadata"]["finalizers"] == [HELD]
                await uninstall(plane.kubeconfig, **installed)
                assert await up.ends() == 0, "\n".join(up.lines)
            assert not [line for line in up.lines if "Traceback" in line or "dead letter:" in line], "\n".join(up.lines)
            assert await admin.get(CONFIG_MAP, "greeting", PLACE) is None
            for kind in (CLUSTER_ROLE, CLUSTER_ROLE_BINDING, SERVICE_ACCOUNT):
                left = (await admin.list(kind, SYSTEM_NAMESPACE if kind == SERVICE_ACCOUNT else "")).items
                assert [each["metadata"]["name"] for each in left if NAME in each["metadata"]["name"]] == []
