"""``tenantry paas check`` beside the API server: over the same bad inputs both refuse and warn of the same paths (p-196)."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from admitting import Admitting, Answer, paas
from bad_paas import CONFIGS, EVERY, HOME, MISTAKES, NAME, Bad
from click.testing import CliRunner
from paasing import CONFIG_NAME

from namespace_registration.command import paas as command
from tenantry.model.kinds import NAMESPACE, Object
from tenantry.model.paas.names import PAAS_CONFIG
from tenantry.testing.objects import obj

Said = set[tuple[bool, str]]
OWNER: Object = paas(NAME, groups={"us": {}}, namespaces=["cicd"], quota={"pods": 1})
_BEFORE = re.compile(r"denied request: |is invalid: \[?|with binding '[^']*': ")
_KEY = re.compile(r'\["?([^\]]*?)"?\]')


@pytest_asyncio.fixture(scope="module", autouse=True, loop_scope="session")
async def home(admitting: Admitting) -> AsyncIterator[None]:
    """A Paas and its namespace, for PaasNS."""
    await admitting.made(OWNER)
    await admitting.namespace(HOME, NAME)
    yield
    await admitting.admin.delete(NAMESPACE, HOME)


def normal(path: str) -> str:
    """Paths in policies have keys in brackets, and those in schemas have dots; how many there are is no part of one."""
    return _KEY.sub(r".\1", path.partition(" (")[0])


def by_the_api_server(answer: Answer) -> Said:
    """What it refuses, or warns of."""
    texts = [answer.message] if answer.message else answer.told.splitlines()
    said: Said = set()
    for text in texts:
        found = _BEFORE.search(text)
        assert found is not None, text
        heads = re.split(r": | does not match ", text[found.end() :], maxsplit=1)[0]
        said |= {(bool(answer.message), normal(each)) for each in heads.split(", ")}
    return said


def by_the_command(folder: Path, bad: Bad) -> Said:
    """What it refuses, or warns of, with the PaasConfig and the Paas of a PaasNS among the files."""
    config = CONFIGS[bad.config]
    documents = [] if config is None else [obj(PAAS_CONFIG, CONFIG_NAME, spec=config)]
    documents += [OWNER] if bad.body["kind"] == "PaasNS" else []
    file = folder / "some.yaml"
    file.write_text(yaml.safe_dump_all([*documents, bad.body]))
    result = CliRunner().invoke(command, ["check", str(file), "-o", "json"])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    named = f"{bad.body['kind']} {bad.body['metadata']['name']}"
    remarks = [each for each in json.loads(result.output) if each["document"] == named]
    refused = any(each["refused"] for each in remarks)
    assert result.exit_code == (1 if refused else 0)
    return {(each["refused"], normal(each["text"].partition(": ")[0])) for each in remarks if each["refused"] is refused}


@pytest.mark.check("p-196")
@pytest.mark.parametrize("config", CONFIGS)
async def test_the_command_says_what_the_api_server_says(admitting: Admitting, tmp_path: Path, config: str) -> None:
    """Without a cluster: refusals, and exit code 1; warnings; with the same paths.  But for expressions, which only it runs."""
    spec = CONFIGS[config]
    if spec is not None:
        await admitting.configure(**spec)
    differ = []
    for bad in (each for each in EVERY if each.config == config and not each.expressions):
        theirs, ours = by_the_api_server(await admitting.create(bad.body)), by_the_command(tmp_path, bad)
        expected = {(bad.refused, normal(path)) for path in bad.paths}
        if not theirs == ours == expected:
            differ.append(f"{bad}: the API server says {theirs}, the command {ours}")
    if spec is not None:
        await admitting.forget()
    assert not differ, "\n".join(differ)


@pytest.mark.check("p-184", without="tenantry-guard-paas-config")
async def test_each_mistake_in_a_configuration_is_refused_with_its_path(admitting: Admitting) -> None:
    """One by one (2.10): expressions, quotas, keys of labels, placeholders, custom fields, names, labels of ours."""
    said = [(bad, await admitting.create(bad.body)) for bad in MISTAKES]
    admitted = [str(bad) for bad, answer in said if not answer.message]
    assert not admitted, "\n".join(admitted)
    for bad, answer in said:
        assert by_the_api_server(answer) == {(True, normal(path)) for path in bad.paths}
