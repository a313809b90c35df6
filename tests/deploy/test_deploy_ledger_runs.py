"""The ledger of a cluster at work: its pod as the API server admits it, told by real functions, and asked as people ask it."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import manifests
import pytest
import pytest_asyncio
import yaml
from click.testing import CliRunner
from commanding import account_kubeconfig
from knative_pods import SYSTEM
from ledger_pod import (
    CONFIG,
    KEY,
    LEDGER,
    SECRET_NAME,
    InPod,
    as_claim,
    asked,
    installation,
    of_docs,
    of_ledger,
    post,
    until_told,
    volumes,
)
from ledgers import audited, now, tenantry, writes_in
from local_subscriber import Subscriber, subscriber
from manifests import Document
from people import FUNCTION, People, registration, token
from pod_process import Mount, PodProcess, can_have_mounts, unshared
from rights import cluster_role, user
from test_deploy_wheel import wheel_of
from times import CONTROLLER_S, LEFT_TO_MAKE_WHOLE, LOCAL_S, PROJECTS_S

from tenantry.api import Api
from tenantry.api.review import reviewed
from tenantry.cli import main
from tenantry.local.control_plane import ControlPlane
from tenantry.local.delivery import is_retried
from tenantry.local.install import INSTALL_MANAGER, install
from tenantry.local.knative import Knative
from tenantry.local.ledger_box import trigger_file
from tenantry.model.config import Config
from tenantry.model.event import DECISION_TYPE
from tenantry.model.kinds import CONFIG_MAP, POD, ROLE_BINDING, SECRET, Object, labels_of
from tenantry.serving.ledger.store import Ledger
from tenantry.testing import eventually
from tenantry.testing.audit import AuditLog
from tenantry.testing.forks import Forks
from tenantry.testing.objects import obj

pytestmark = pytest.mark.skipif(not can_have_mounts(), reason="this machine lets no process have mounts of its own (unshare)")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the wheel has."""
    folder = tmp_path_factory.mktemp("image")
    with zipfile.ZipFile(wheel_of(manifests.ROOT, tmp_path_factory.mktemp("wheel"))) as archive:
        archive.extractall(folder)
    folder.chmod(0o755)  # others than we run it
    return folder


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory, kustomize: list[str]) -> list[Document]:
    """The installation that docs/history.md describes, on plain Deployments, with a configuration of its own."""
    return installation(tmp_path_factory.mktemp("installation"), kustomize)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pod(control_plane: ControlPlane, admin: Api, rendered: list[Document]) -> Object:
    """The pod of the Deployment, as the controllers make it and the API server admits it."""
    async with await Api.connect(field_manager=INSTALL_MANAGER, kubeconfig=control_plane.kubeconfig) as api:
        await install(api, [FUNCTION], Config(), lambda _: None)
    body = obj(SECRET, SECRET_NAME, SYSTEM, stringData={"key": KEY.decode()})
    await admin.apply(SECRET, body)
    for each in of_ledger(rendered):
        await admin.apply(manifests.kind_of(each.body), each.body)

    async def admitted() -> Object | None:
        pods = (await admin.list(POD, SYSTEM)).items
        return next((each for each in pods if labels_of(each).items() >= LEDGER.items()), None)

    found = await eventually(admitted, within=CONTROLLER_S, what="a pod of the Deployment")
    assert found is not None
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def contents(admin: Api, pod: Object, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Mount]:
    """Its volumes: the ConfigMap and the Secret as the API server has them, scratch space, and the claim's folder."""
    return await volumes(admin, pod, tmp_path_factory.mktemp("volumes"))


@pytest.fixture(scope="module")
def made(image: Path, pod: Object, contents: dict[str, Mount], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """``made(claim)`` is the pod with another volume, not started; all end with the module."""
    all_of_them: list[PodProcess] = []

    def make(claim: Mount | None = None) -> PodProcess:
        volumes = {**contents, **({"ledger": claim} if claim is not None else {})}
        all_of_them.append(PodProcess(pod, image, tmp_path_factory.mktemp("pod"), volumes))
        return all_of_them[-1]

    yield make
    for each in all_of_them:
        if each.code is None:
            each.end(signal.SIGKILL)


Made = Callable[..., PodProcess]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def ledger(made: Made, pod: Object) -> PodProcess:
    """The running ledger."""
    started = made()
    started.start()
    await started.ready()
    return started


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sink() -> AsyncIterator[Subscriber]:
    """A sink of somebody else."""
    async with subscriber() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def told(
    ledger: PodProcess,
    sink: Subscriber,
    rendered: list[Document],
    contents: dict[str, Mount],
    control_plane: ControlPlane,
    forks: Forks,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Knative]:
    """A real function whose decisions come through the broker, by the component's Trigger, to its Service."""
    (trigger,) = [each for each in rendered if (each.kind, each.name) == ("Trigger", "ledger")]
    (shipped,) = yaml.safe_load_all(trigger_file().read_text())
    shipped["spec"]["delivery"]["deadLetterSink"]["ref"]["apiVersion"] = "v1"
    assert trigger.body == shipped, "the local broker takes the Trigger from the file"
    (service,) = [each for each in rendered if (each.kind, each.name, each.api_version) == ("Service", "ledger", "v1")]
    reference = trigger.spec["subscriber"]["ref"]
    assert (reference["kind"], reference["name"], reference["namespace"]) == (service.kind, service.name, service.namespace)
    assert labels_of(ledger.pod).items() >= service.spec["selector"].items()
    (port,) = service.spec["ports"]
    key = contents["decisions"].folder
    assert key is not None
    triggers = tmp_path_factory.mktemp("events") / "triggers"
    shutil.copytree(manifests.ROOT / "triggers", triggers)
    documented = of_docs("https://siem.example.com/cloudevents").replace("https://siem.example.com/cloudevents", sink.url)
    (triggers / "siem.yaml").write_text(documented.replace("rbac-aggregation", FUNCTION))
    options: dict[str, Any] = {"functions": [FUNCTION], "spawn": forks.spawn, "triggers": triggers}
    running = Knative(control_plane.kubeconfig, tmp_path_factory.mktemp("knative"), config=CONFIG, **options)
    running.ledger = InPod(f"{ledger.address(port['targetPort'])}/", key / "key")  # type: ignore[assignment]
    async with running:
        await running.drain()
        yield running


# -- the pod ---------------------------------------------------------------------------------------------------------


async def test_the_account_may_nothing_and_the_pod_has_no_token(
    pod: Object, admin: Api, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """The API server gave the pod no token; with one of its account nothing may be read or written in our namespace."""
    assert (pod["spec"]["serviceAccountName"], pod["spec"]["automountServiceAccountToken"]) == ("ledger", False)
    assert not [each for each in pod["spec"]["volumes"] if "projected" in each]
    kubeconfig = await account_kubeconfig(admin, control_plane, SYSTEM, "ledger", tmp_path / "ledger")
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": SYSTEM}}
    async with await Api.connect(field_manager="ledger", kubeconfig=kubeconfig) as own:
        answer = await own.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", None, body)
    groups = {group for each in answer["status"]["resourceRules"] for group in each["apiGroups"]}
    assert groups <= {"authorization.k8s.io", "authentication.k8s.io"}


def test_it_runs_as_its_manifest_says(ledger: PodProcess) -> None:
    """The image's user in the pod's group, without a capability, on a root that it cannot write; the file is its own."""
    seen = ledger.exec(
        "sh", "-c", "id -u; id -G; grep CapEff /proc/self/status; touch /x; stat -c %a /var/lib/tenantry/ledger.db"
    )
    if os.geteuid() == 0:
        assert seen.stdout.split() == ["65532", "0", "65532", "CapEff:", "0000000000000000", "600"]
    assert "Read-only file system" in seen.stderr


# -- decisions -------------------------------------------------------------------------------------------------------


async def test_decisions_reach_it_by_its_trigger_and_outlive_its_death(
    told: Knative, ledger: PodProcess, admin: Api, audit_log: AuditLog, contents: dict[str, Mount]
) -> None:
    """What the API server stored is in it, also what was decided while it was dead; the file is the same, and none is missing."""
    people, first, second = People(admin), f"p-{token()}", f"p-{token()}"
    folder = contents["ledger"].folder
    assert folder is not None
    began = now()
    await people.namespace(f"team-{first}", first)
    await until_told(ledger, f"project/{first}")
    file = (folder / "ledger.db").stat().st_ino

    assert ledger.end(signal.SIGKILL) == -signal.SIGKILL
    await people.namespace(f"team-{second}", second)
    await people.until(CONFIG_MAP, "dummy.cattle.io.v1alpha1", registration(second), bool, within=PROJECTS_S)
    ledger.start()
    await ledger.ready()
    await until_told(ledger, f"project/{second}")
    await asyncio.wait_for(told.drain(), LOCAL_S)

    found = asked(ledger)
    assert audited(audit_log, [FUNCTION], began) == writes_in(each for each in found["decisions"] if each["time"] >= began[:19])
    assert (found["missing"], (folder / "ledger.db").stat().st_ino) == ([], file)
    assert not list(folder.glob("*.damaged-*"))


async def test_another_sink_gets_the_same_by_a_trigger_of_its_own(told: Knative, sink: Subscriber, admin: Api) -> None:
    """The Trigger of docs/history.md takes decisions to any address as CloudEvents, with what there is to choose them by."""
    project = f"p-{token()}"
    await People(admin).namespace(f"team-{project}", project)

    async def came() -> dict[str, str]:
        return next((each.headers for each in sink.calls if each.headers.get("ce-owner") == f"project/{project}"), {})

    headers = await eventually(came, within=LOCAL_S, what="the decision about the project")
    assert (headers["ce-type"], headers["ce-function"], headers["ce-unit"]) == (DECISION_TYPE, FUNCTION, "projects")
    assert not [each for each in sink.calls if not each.headers["ce-type"].startswith(DECISION_TYPE)]


async def test_it_is_asked_in_its_pod_and_replays_are_sent_from_outside(
    told: Knative, ledger: PodProcess, admin: Api, control_plane: ControlPlane
) -> None:
    """As docs/history.md says: `kubectl exec` gives the history, and its JSON is what `tenantry replay --decisions -` takes."""
    project = f"p-{token()}"
    await People(admin).namespace(f"team-{project}", project)
    await until_told(ledger, f"project/{project}")
    text = ledger.exec("tenantry", "history", f"project/{project}", "--since", "2h")
    assert (text.returncode, f"create Namespace {registration(project)}" in text.stdout) == (0, True), text.stderr
    at = ledger.exec("tenantry", "history", "--at", now(), f"project/{project}")
    assert f"Namespace {registration(project)} version" in at.stdout

    as_json = ledger.exec("tenantry", "history", f"project/{project}", "--since", "2h", "-o", "json").stdout
    environment = {"KUBECONFIG": str(control_plane.kubeconfig)}
    sent = await asyncio.to_thread(CliRunner().invoke, main, ["replay", "--decisions", "-"], input=as_json, env=environment)
    assert f"{FUNCTION}: projects:project/{project}: sent\n" in sent.stdout, sent.stderr
    outside = await tenantry("history", KUBECONFIG=str(control_plane.kubeconfig), TENANTRY_LEDGER="")
    assert outside.exit_code != 0
    assert "kubectl exec -n tenantry-system deploy/ledger -- tenantry history" in outside.stderr


async def test_who_may_ask_is_who_may_exec_there(pod: Object, admin: Api) -> None:
    """Administrators of our namespace, as the documentation says; not those who may only view it, and no account of ours."""
    for name, level in (("boss", "admin"), ("looker", "view")):
        body = obj(ROLE_BINDING, name, SYSTEM, roleRef=cluster_role(level), subjects=[user(name)])
        await admin.apply(ROLE_BINDING, body)

    async def may(who: str) -> bool:
        asked_for = {"verb": "create", "resource": "pods", "subresource": "exec", "namespace": SYSTEM}
        return await reviewed(admin, {"user": who, "resourceAttributes": asked_for})

    await eventually(lambda: may("boss"), within=CONTROLLER_S)
    accounts = {f"system:serviceaccount:{SYSTEM}:{name}" for name in (*manifests.services(), "ledger", "dead-letters")}
    assert not [who for who in ("looker", *accounts) if await may(who)]


# -- what can go wrong -----------------------------------------------------------------------------------------------


@LEFT_TO_MAKE_WHOLE
async def test_a_full_volume_asks_senders_to_come_again(made: Made) -> None:
    """503, which brokers repeat, and what to do in the log; what was answered 204 is kept, and all goes on when there is room."""
    full = made(Mount(size="600k"))
    full.start()
    await full.ready()
    statuses = [await post(full, number, writes=100) for number in range(1, 41)]
    assert set(statuses) == {204, 503}
    assert is_retried(503)
    assert "the disk is full: free room there, or lower decisions.ledger.maxMegabytes" in full.said()
    kept = [number for number, status in enumerate(statuses, 1) if status == 204]
    assert [each["sequence"] for each in asked(full)["decisions"]] == kept

    full.as_node("mount", "-o", "remount,size=64m", "/var/lib/tenantry")
    assert {await post(full, number, writes=100) for number in range(1, 41)} == {204}
    assert [each["sequence"] for each in asked(full)["decisions"]] == list(range(1, 41))
    assert "the ledger is written again" in full.said()
    assert full.end() == 0


@LEFT_TO_MAKE_WHOLE
async def test_a_read_only_volume_ends_it_with_the_way_out(made: Made, pod: Object, tmp_path: Path) -> None:
    """Exit code 2 and what is wrong, on an empty volume and on one with a ledger; until then nobody is ready to be sent to."""
    volume = as_claim(tmp_path, pod)
    one = made(Mount(volume, read_only=True))
    one.start()
    assert await one.ended() == 2
    assert "is on a read-only volume: mount it for writing, or name another file" in one.said(), one.said()
    one.volumes["ledger"].read_only = False
    one.start()
    await one.ready()
    assert await post(one, 1) == 204
    assert one.end() == 0
    before = one.said().count("is on a read-only volume")
    one.volumes["ledger"].read_only = True
    one.start()
    assert (await one.ended(), one.said().count("is on a read-only volume") - before) == (2, 1)


@LEFT_TO_MAKE_WHOLE
def test_a_copy_is_asked_where_nobody_may_write(tmp_path: Path) -> None:
    """A copy on a read-only place is read as it is; one that lacks what its writer did not put into it says the way out."""
    path = tmp_path / "ledger.db"
    made = Ledger(path, max_age_days=1, max_bytes=2**20)
    made.open()
    made.close()
    place = shlex.quote(str(tmp_path))
    asked = shlex.join([sys.executable, "-m", "tenantry.cli", "history", "--ledger", str(path)])
    script = f"mount --bind {place} {place}; mount -o remount,bind,ro {place}; exec {asked}"

    def answer() -> subprocess.CompletedProcess[str]:
        return subprocess.run([*unshared(), "sh", "-euc", script], capture_output=True, text=True, check=False, timeout=60)

    found = answer()
    assert (found.returncode, found.stdout) == (0, "the ledger has no decision in that time, and nothing else yet\n"), (
        found.stderr
    )
    path.with_name("ledger.db-wal").write_bytes(b"what the writer had not put into the file")
    found = answer()
    assert (found.returncode, found.stdout) == (1, "")
    assert "copy it, and the files of its name beside it, to where you may write" in found.stderr


@LEFT_TO_MAKE_WHOLE
async def test_a_damaged_file_is_put_aside_and_named(made: Made, pod: Object, tmp_path: Path) -> None:
    """The next event is kept; the history says where the old file is, and what is missing."""
    broken = made(Mount(as_claim(tmp_path, pod)))
    broken.start()
    await broken.ready()
    assert [await post(broken, number) for number in (1, 2)] == [204, 204]
    broken.end(signal.SIGKILL)
    for each in tmp_path.glob("ledger.db*"):
        each.write_bytes(b"\xff" * each.stat().st_size)
    broken.start()
    await broken.ready()
    assert await post(broken, 3) == 204
    found = asked(broken)
    (aside,) = [each.name for each in tmp_path.glob("ledger.db.damaged-*") if not each.name.endswith(("-wal", "-shm"))]
    assert [each["sequence"] for each in found["decisions"]] == [3]
    texts = [each["text"] for each in found["missing"]]
    assert any(aside in text for text in texts), texts
    assert any("numbers 1 to 2 of process f-1 are missing" in text for text in texts), texts


async def test_what_is_unsigned_is_refused_for_good(ledger: PodProcess) -> None:
    """403, which no broker repeats: it goes to the dead letters."""
    assert await post(ledger, 1, signed=False) == 403
    assert not is_retried(403)


@LEFT_TO_MAKE_WHOLE
async def test_retention_is_that_of_the_configuration(made: Made, pod: Object, tmp_path: Path) -> None:
    """`decisions.ledger.maxMegabytes` in the ConfigMap keeps the file within it: the oldest go, and are not missing."""
    much = made(Mount(as_claim(tmp_path, pod)))
    much.start()
    await much.ready()
    for first in range(1, 1501, 50):
        assert {*await asyncio.gather(*(post(much, number, writes=10) for number in range(first, first + 50)))} == {204}
    found = asked(much)
    numbers = [each["sequence"] for each in found["decisions"]]
    assert (numbers[-1], found["missing"]) == (1500, [])
    assert 100 < len(numbers) < 1400
    assert much.end() == 0
    assert sum(each.stat().st_size for each in tmp_path.iterdir()) < 1.5 * 2**20
