"""Where the ledger is, what it keeps, and whose events it takes: from the environment and the configuration."""

from __future__ import annotations

import os
from pathlib import Path

from tenantry.model.config import Config
from tenantry.model.limits import MIB
from tenantry.serving.config import ConfigError, load_config
from tenantry.serving.ledger import DEFAULT_FILE, LEDGER_VARIABLE
from tenantry.serving.ledger.store import Ledger
from tenantry.serving.signing import KEY_VARIABLE, NoKey, key_from_environment


def ledger_of(path: Path, config: Config) -> Ledger:
    """The ledger in a file, with the retention of a configuration."""
    kept = config.decisions.ledger
    return Ledger(path, max_age_days=kept.max_age_days, max_bytes=kept.max_megabytes * MIB)


def ledger_from_environment() -> tuple[Ledger, bytes]:
    """The ledger that the environment names, and the key of those who may write it.

    Raises:
        ConfigError: there is no key, or the configuration cannot be used.
    """
    try:
        key = key_from_environment()
    except NoKey as error:
        raise ConfigError(str(error)) from error
    if not key:
        raise ConfigError(f"the ledger takes only what is signed: name the file with the functions' key in {KEY_VARIABLE}")
    return ledger_of(Path(os.environ.get(LEDGER_VARIABLE) or DEFAULT_FILE), load_config()), key
