"""Reading tests: files, and the folders that they are in, with an error for each thing that is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tenantry.model.config import Config
from tenantry.model.kinds import Object
from tenantry.serving.charts import chart_files
from tenantry.serving.config import ConfigError, checked_config, explain, load_config
from tenantry.testing.cases.form import Form, check_object, objects_in
from tenantry.testing.cases.written import Written, written

ENDINGS = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Case:
    """One test, ready to run."""

    form: Form
    written: Written
    config: dict[str, Any]
    """The configuration that Tenantry runs with, as a file has it."""
    manifests: dict[str, list[Object]]
    """What is in the files that it names."""

    @property
    def name(self) -> str:
        """What it shows."""
        return self.form.test

    @property
    def system(self) -> str:
        """Tests that run on the same system have the same text."""
        return json.dumps([self.config, self.form.functions], sort_keys=True)

    def objects(self, value: Any) -> list[Object]:
        """The objects of a write."""
        return self.manifests[value] if isinstance(value, str) else objects_in(value)


def read_all(paths: Iterable[Path]) -> list[Case]:
    """The tests of these files and folders, in order: of a folder each YAML file, those in folders below it not.

    Raises:
        ConfigError: with a line for each thing that is wrong in any of them.
    """
    cases: list[Case] = []
    wrong: list[str] = []
    for path in dict.fromkeys(file for each in paths for file in _files(each)):
        try:
            cases += _read(path)
        except ConfigError as error:
            wrong.append(str(error))
    if wrong:
        raise ConfigError("\n".join(wrong))
    return cases


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.iterdir() if file.suffix in ENDINGS and file.is_file())
    if not found:
        raise ConfigError(f"{path}: there is no test in this folder; tests are its files *.yaml")
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read {path}: it is not UTF-8 text") from error


def _read(path: Path) -> list[Case]:
    documents = written(_text(path), str(path))
    if not documents:
        raise ConfigError(f"{path}: there is no test in it")
    cases, wrong = [], []
    for document in documents:
        try:
            cases.append(_case(path, document))
        except ConfigError as error:
            wrong.append(str(error))
    if wrong:
        raise ConfigError("\n".join(wrong))
    return cases


def _case(path: Path, document: Written) -> Case:
    if not isinstance(document.value, dict) or "test" not in document.value:
        raise ConfigError(f"{document.at(())}: this is no test: it has no key `test`; keep other files in a folder below")
    try:
        form = Form.model_validate(document.value, by_alias=True, by_name=False)
    except ValidationError as error:
        raise ConfigError("\n".join(f"{document.at(loc)}: {line}" for loc, line in explain(error, Form))) from None
    manifests = {}
    for place, value in _named(form):
        try:
            manifests[value] = _manifests(path.parent / value)
        except ConfigError as error:
            raise ConfigError(f"{document.at(place)}: {error}") from None
    return Case(form, document, _configuration(path, document, form), manifests)


def _named(form: Form) -> list[tuple[tuple[int | str, ...], str]]:
    """The files of manifests that a test names, with the place of each."""
    writes: list[tuple[tuple[int | str, ...], Any]] = [(("given", number), each) for number, each in enumerate(form.given)]
    for number, step in enumerate(form.steps):
        writes += [(("steps", number, "when", at), each) for at, each in enumerate(step.when)]
        writes += [(("steps", number, "then", at, "refused"), each.refused) for at, each in enumerate(step.then) if each.refused]
    found = [((*place, each.verb), each.objects) for place, each in writes if each.verb != "sweep"]
    return [(place, value) for place, value in found if isinstance(value, str)]


def _manifests(path: Path) -> list[Object]:
    found = [each for each in written(_text(path), str(path)) if each.value]
    for each in found:
        try:
            check_object(each.value)
        except ValueError as error:
            raise ConfigError(f"{each.at(())}: {error}") from error
    if not found:
        raise ConfigError(f"{path}: there is no object in it")
    return [each.value for each in found]


def _configuration(path: Path, document: Written, form: Form) -> dict[str, Any]:
    """The configuration, with absolute paths of charts.

    One that the test names is beside the test; without one it is that of ``TENANTRY_CONFIG``, as everywhere.
    """
    at = document.at(("configuration",))
    try:
        if isinstance(form.configuration, dict):
            config = checked_config(form.configuration, at)
        else:
            config = load_config(path.parent / form.configuration if form.configuration else None)
    except ConfigError as error:
        raise ConfigError(f"{at}: {error}" if isinstance(form.configuration, str) else str(error)) from None
    dumped: dict[str, Any] = config.model_dump(mode="json", by_alias=True, exclude_unset=True)
    _put_charts(path, document, form, config, dumped)
    try:
        chart_files(Config.model_validate(dumped, by_alias=True, by_name=False))
    except ConfigError as error:
        raise ConfigError(f"{document.at(('charts',))}: {error}") from None
    return dumped


def _put_charts(path: Path, document: Written, form: Form, config: Config, dumped: dict[str, Any]) -> None:
    charts = config.helm_project_operator.charts
    known = [chart.release_name for chart in charts]
    if unknown := [name for name in form.charts if name not in known]:
        raise ConfigError(
            f"{document.at(('charts', unknown[0]))}: charts.{unknown[0]}: the configuration has no chart with this releaseName; "
            f"it has {', '.join(known)}"
        )
    listed: Sequence[dict[str, Any]] = dumped.get("helmProjectOperator", {}).get("charts", ())
    if form.charts and not listed:
        raise ConfigError(f"{document.at(('charts',))}: charts: the configuration lists none in helmProjectOperator.charts")
    for name, chart in zip(known, listed, strict=False):
        if name in form.charts:
            chart["chart"] = str((path.parent / form.charts[name]).resolve())
        elif isinstance(chart.get("chart"), str):
            chart["chart"] = str(Path(chart["chart"]).resolve())
