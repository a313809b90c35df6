"""What ``tenantry create secret git`` prints, and what it never says; no cluster is there."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from creating import NOWHERE, create, printed, refused
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

KNOWN_HOSTS = "x ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl\n"


@pytest.fixture
def known_hosts(tmp_path: Path) -> str:
    """A known_hosts file."""
    file = tmp_path / "known_hosts"
    file.write_text(KNOWN_HOSTS)
    return str(file)


@pytest.mark.check("f-146")
@pytest.mark.parametrize(
    ("algorithm", "kind"),
    [("", "ecdsa-sha2-nistp384"), ("rsa", "ssh-rsa"), ("ed25519", "ssh-ed25519"), ("ecdsa", "ecdsa-sha2-nistp384")],
)
def test_keys_for_ssh_are_a_pair(known_hosts: str, algorithm: str, kind: str) -> None:
    """The private key is the one to the public key, the hosts are those of the file, and no two runs give the same."""
    options = ("-n", "tenant1", "--url=ssh://git@host/x", f"--known-hosts-file={known_hosts}")
    chosen = (f"--ssh-key-algorithm={algorithm}",) if algorithm else ()
    (found,), (other,) = (printed("secret", "git", "tenant1-git-auth", *options, *chosen) for _ in range(2))
    assert (found["apiVersion"], found["kind"]) == ("v1", "Secret")
    assert found["metadata"] == {"name": "tenant1-git-auth", "namespace": "tenant1"}
    values = found["stringData"]
    assert set(values) == {"identity", "identity.pub", "known_hosts"}
    assert values["known_hosts"] == KNOWN_HOSTS
    private = load_pem_private_key(values["identity"].encode(), None)
    public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    assert values["identity.pub"] == f"{public}\n"
    assert public.split()[0] == kind
    assert values["identity"] != other["stringData"]["identity"]
    assert values["identity.pub"] != other["stringData"]["identity.pub"]


@pytest.mark.check("f-146")
def test_credentials_are_printed_under_their_keys(tmp_path: Path) -> None:
    """A user with a password, or a token, and an authority's certificate beside them."""
    url = "--url=https://example.com/x"
    (found,) = printed("secret", "git", "auth", url, "--username=me", "--password=a: b")
    assert found["stringData"] == {"username": "me", "password": "a: b"}
    assert found["metadata"] == {"name": "auth", "namespace": "flux-system"}
    file = tmp_path / "ca.crt"
    file.write_text("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n")
    (found,) = printed("secret", "git", "auth", url, "--bearer-token=t", f"--ca-crt-file={file}")
    assert found["stringData"] == {"bearerToken": "t", "ca.crt": file.read_text()}


SECRET = "s3cr3t-value"


@pytest.mark.check("f-63")
@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--url=https://h/x"], "http and https need credentials"),
        (["--url=https://h/x", "--username=me"], "http and https need credentials"),
        (["--url=https://h/x", f"--password={SECRET}"], "http and https need credentials"),
        (["--url=https://h/x", "--username=me", f"--password={SECRET}", f"--bearer-token={SECRET}"], "not both"),
        ([f"--url=https://me:{SECRET}@h/x"], "it holds a password"),
        ([f"--url=ftp://me:{SECRET}@h/x"], "'ftp' is not one of Git"),
        (["--url=https://h/x", "--username=me", "--password", "a", SECRET], "1 more arguments"),
        (["--url=ssh://h/x", "--username=me", f"--password={SECRET}"], "with ssh there are only keys"),
        (["--url=https://h/x", f"--pasword={SECRET}"], "--pasword"),
        (["--url=https://h/x", "--username=me", f"--password={SECRET}", "--ca-crt-file=/nowhere/ca"], "/nowhere/ca"),
    ],
)
def test_wrong_credentials_are_refused_without_a_word_of_them(
    options: list[str], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    """None, half of them, too many; and what they are is nowhere to be read."""
    caplog.set_level(logging.DEBUG)
    code, output, errors = create("secret", "git", "auth", *options, "--export")
    assert (code, output) == (2, "")
    assert errors.count("\n") == 1
    assert why in errors
    assert SECRET not in errors + caplog.text


@pytest.mark.check("f-63")
def test_no_credential_is_told_when_there_is_no_cluster(caplog: pytest.LogCaptureFixture) -> None:
    """Neither on stderr nor in a log."""
    caplog.set_level(logging.DEBUG)
    code, output, errors = create("secret", "git", "s", "--url=https://h/x", "--username=me", f"--password={SECRET}")
    assert (code, output) == (2, "")
    assert NOWHERE in errors
    assert SECRET not in errors + caplog.text


def test_a_file_without_keys_of_hosts_is_refused(tmp_path: Path) -> None:
    """With what a line of one looks like."""
    file = tmp_path / "empty"
    file.write_text("# nothing\n")
    refused("secret", "git", "auth", "--url=ssh://h/x", f"--known-hosts-file={file}", why="has no key of a host")


def test_a_host_that_does_not_answer_is_told() -> None:
    """With what to do in place of it."""
    refused("secret", "git", "auth", "--url=ssh://git@127.0.0.1:1/x", why="give --known-hosts-file")
