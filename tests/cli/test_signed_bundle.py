"""`bundle --sign` and `reproduce --signers`, with the machine's own ssh-keygen and ssh-agent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kernelproof.runs.bundles.writer import write_bundle
from tests.cli.program import Program
from tests.db import samples
from tests.runs.bundles import forging

ADA = "ada@example.org"


def ssh_keygen(*words: object, cwd: Path, data: bytes = b"") -> bytes:
    command = ["ssh-keygen", *map(str, words)]
    return subprocess.run(command, cwd=cwd, input=data, capture_output=True, check=True).stdout


def make_key(folder: Path, name: str, passphrase: str = "") -> Path:
    ssh_keygen("-q", "-t", "ed25519", "-N", passphrase, "-C", "", "-f", name, cwd=folder)
    return folder / name


def allow(key: Path, principal: str = ADA, options: str = "") -> Path:
    """A file of allowed signers with one line."""
    public = key.with_suffix(".pub").read_text().strip()
    path = key.parent / f"signers-{key.name}-{len(list(key.parent.iterdir()))}"
    path.write_text(" ".join((principal, options, public)) + "\n", errors="surrogateescape")
    return path


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ada", "other"):
        make_key(folder, name)
    make_key(folder, "locked", "secret")
    return folder


@pytest.fixture
def signed(tmp_path: Path, keys: Path) -> Path:
    """A bundle by Ada."""
    path = tmp_path / "relu.bundle"
    write_bundle([forging.attempt()], path, keys / "ada")
    return path


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Path:
    """A workspace with one attempt that was verified."""
    workspace = tmp_path_factory.mktemp("judged")
    with samples.new_store(workspace, empty_database) as store:
        samples.judge(store, forging.problem(), samples.settings(), speedup=2.0)
    return workspace


def refusal(program: Program, code: int, *words: object) -> str:
    """The one line that says why a command does nothing."""
    done = program.run(*words, code=code)
    (line,) = done.stderr.splitlines()
    assert done.stdout == "" and line.isprintable() and line.startswith("kernelproof: ")
    return line


def test_the_signature_is_accepted_and_its_name_is_said(
    program: Program, judged: Path, keys: Path, tmp_path: Path
) -> None:
    path = tmp_path / "one.bundle"
    done = program.run("bundle", "1", "--workspace", judged, "-o", path, "--sign", keys / "ada")
    assert done.stdout.splitlines()[1] == f"{path}.sig: its signature"
    signers = allow(keys / "ada")
    said = program.run("reproduce", path, "--list", "--signers", signers).stdout
    assert said.startswith(f"{path}: signed by {ADA}\n{path}: 1 attempt, sha256 ")
    plain = ("-Y", "verify", "-f", signers, "-I", ADA, "-n", "kernelproof", "-s", f"{path}.sig")
    assert b'Good "kernelproof" signature' in ssh_keygen(*plain, cwd=tmp_path, data=path.read_bytes())
    unsigned = tmp_path / "unsigned.bundle"
    program.run("bundle", "1", "--workspace", judged, "-o", unsigned)
    assert unsigned.read_bytes() == path.read_bytes() and not Path(f"{unsigned}.sig").exists()


@pytest.mark.ci
def test_a_signed_bundle_is_reproduced_elsewhere(
    program: Program, measured: Path, suite: Path, keys: Path, tmp_path: Path
) -> None:
    path = tmp_path / "sines.bundle"
    program.run("bundle", "1", "--workspace", measured, "-o", path, "--sign", keys / "ada")
    here = ("--signers", allow(keys / "ada"), "--suite", suite, "--rigor", "quick", "--json")
    found = json.loads(program.run("reproduce", path, *here, code=None).stdout)
    assert found["signer"] == ADA
    assert found["reproductions"][0]["now"]["status"] == "correct"


def _edit_member(path: Path, key: Path) -> None:
    members = forging.unzipped(path.read_bytes())
    members["attempts/17/candidate.py"] += b"\nprint('ran')\n"
    path.write_bytes(forging.zipped(members))


def _edit_all_alike(path: Path, key: Path) -> None:
    """Another manifest, which fits: no hash shows that."""
    other = forging.attempt(speedup=200.0)
    path.write_bytes(forging.zipped(forging.members(other)))
    assert forging.told(path) == []


def _append(path: Path, key: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def _sign_elsewhere(path: Path, key: Path) -> None:
    Path(f"{path}.sig").write_text("-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n")


def _sign_for_git(path: Path, key: Path) -> None:
    Path(f"{path}.sig").unlink()
    ssh_keygen("-q", "-Y", "sign", "-n", "git", "-f", key, path, cwd=key.parent)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_edit_member, "incorrect signature"),
        (_edit_all_alike, "incorrect signature"),
        (_append, "incorrect signature"),
        (_sign_elsewhere, "invalid format"),
        (_sign_for_git, "namespace does not match"),
    ],
)
def test_what_was_changed_after_it_was_signed(
    change: Callable[[Path, Path], None], words: str, program: Program, signed: Path, keys: Path
) -> None:
    change(signed, keys / "ada")
    line = refusal(program, 1, "reproduce", signed, "--trust-problems", "--signers", allow(keys / "ada"))
    assert f"{signed}.sig does not sign {signed} (" in line and words in line
    assert line.endswith("get both from the author again")


def test_a_bundle_without_a_signature(program: Program, signed: Path, keys: Path) -> None:
    signature, signers = Path(f"{signed}.sig"), allow(keys / "ada")
    signature.unlink()
    line = refusal(program, 1, "reproduce", signed, "--signers", signers)
    assert f"{signed} is not signed: {signature} cannot be read (No such file or directory); get" in line
    os.mkfifo(signature)
    assert "it is a pipe" in refusal(program, 1, "reproduce", signed, "--signers", signers)
    signature.unlink()
    signature.write_bytes(b"x" * (2 << 20))
    assert "holds more than 1 MiB" in refusal(program, 1, "reproduce", signed, "--signers", signers)


def test_a_file_that_is_no_bundle_is_not_read_before_its_signature(
    program: Program, keys: Path, tmp_path: Path
) -> None:
    path = tmp_path / "text"
    path.write_text("speedup 9")
    line = refusal(program, 1, "reproduce", path, "--signers", allow(keys / "ada"))
    assert "is not signed" in line
    ssh_keygen("-q", "-Y", "sign", "-n", "kernelproof", "-f", keys / "ada", path, cwd=tmp_path)
    done = program.run("reproduce", path, "--signers", allow(keys / "ada"), code=2)
    assert "it is not a zip file" in done.stderr


@pytest.mark.parametrize(
    ("key", "options", "words"),
    [
        ("other", "", "No principal matched"),
        ("ada", 'valid-before="20200101"', "key has expired"),
        ("ada", 'valid-after="29990101"', "key is not yet valid"),
        ("ada", 'namespaces="git"', 'not permitted for use in signature namespace "kernelproof"'),
    ],
)
def test_a_key_that_the_list_does_not_accept(
    key: str, options: str, words: str, program: Program, signed: Path, keys: Path
) -> None:
    signers = allow(keys / key, options=options)
    line = refusal(program, 1, "reproduce", signed, "--signers", signers)
    assert f"{signed} is signed by the key SHA256:" in line
    assert f"which {signers} does not accept (" in line and words in line


def test_a_revoked_key(program: Program, signed: Path, keys: Path, tmp_path: Path) -> None:
    signers = allow(keys / "ada")
    others, hers = tmp_path / "others.krl", tmp_path / "hers.krl"
    ssh_keygen("-q", "-k", "-f", others, keys / "other.pub", cwd=keys)
    ssh_keygen("-q", "-k", "-f", hers, keys / "ada.pub", cwd=keys)
    accepted = program.run("reproduce", signed, "--list", "--signers", signers, "--revoked", others)
    assert accepted.stdout.startswith(f"{signed}: signed by {ADA}\n")
    for revoked in (hers, keys / "ada.pub", signed):  # the last is no list of keys
        line = refusal(program, 1, "reproduce", signed, "--signers", signers, "--revoked", revoked)
        assert f"and {revoked} revokes that, or is no list of keys" in line


def test_mistakes_of_the_command(program: Program, signed: Path, keys: Path, tmp_path: Path) -> None:
    missing, pipe = tmp_path / "missing", tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "it is a pipe" in refusal(program, 2, "reproduce", signed, "--signers", pipe)
    assert f"{missing} cannot be read" in refusal(program, 2, "reproduce", signed, "--signers", missing)
    signers = ("--signers", allow(keys / "ada"))
    assert f"{missing} cannot be read" in refusal(
        program, 2, "reproduce", signed, *signers, "--revoked", missing
    )
    assert "--revoked needs --signers" in refusal(program, 2, "reproduce", signed, "--revoked", missing)
    assert "--signers is for bundles" in refusal(program, 2, "reproduce", "1", *signers)


def test_names_in_the_list_never_steer_a_terminal(program: Program, signed: Path, keys: Path) -> None:
    hostile = "\x1b[2J\udcff\u202eada\x85"
    signers = ("--signers", allow(keys / "ada", f"{hostile},-Ieve"))
    (first, *_) = program.run("reproduce", signed, "--list", *signers).stdout.splitlines()
    assert first == f"{signed}: signed by \ufffdada"
    edited = forging.unzipped(signed.read_bytes()) | {"attempts/17/candidate.py": b"print('other')"}
    signed.write_bytes(forging.zipped(edited))
    Path(f"{signed}.sig").unlink()
    ssh_keygen("-q", "-Y", "sign", "-n", "kernelproof", "-f", keys / "ada", signed, cwd=keys)
    found = json.loads(program.run("reproduce", signed, "--json", *signers, code=1).stdout)
    assert found["signer"] == hostile and len(found["tampering"]) == 1


@pytest.mark.parametrize("name", ["nothing", "text", "folder"])
def test_a_file_that_is_no_key(program: Program, judged: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "text").write_text("hello")
    (tmp_path / "folder").mkdir()
    key, path = tmp_path / name, tmp_path / "x.bundle"
    line = refusal(program, 2, "bundle", "1", "--workspace", judged, "-o", path, "--sign", key)
    assert "make one with ssh-keygen -t ed25519 -f " in line and str(key) in line
    assert not path.exists()


def test_a_key_that_is_readable_by_all(program: Program, judged: Path, tmp_path: Path) -> None:
    key, path = make_key(tmp_path, "key"), tmp_path / "x.bundle"
    key.chmod(0o644)
    line = refusal(program, 3, "bundle", "1", "--workspace", judged, "-o", path, "--sign", key)
    assert "Permissions 0644" in line and "@" not in line and not path.exists()


@pytest.fixture
def agent(program: Program, tmp_path: Path) -> Iterator[Program]:
    """The program with an agent that holds no key."""
    socket = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    yield replace(program, extra={"SSH_AUTH_SOCK": str(socket)})
    process.send_signal(signal.SIGTERM)
    process.communicate()


def test_a_key_with_a_passphrase_needs_an_agent(
    agent: Program, judged: Path, keys: Path, tmp_path: Path
) -> None:
    key, path = keys / "locked", tmp_path / "x.bundle"
    words = ("bundle", "1", "--workspace", judged, "-o", path, "--sign")
    line = refusal(agent, 3, *words, key)
    assert "incorrect passphrase" in line and line.endswith(f"ssh-add {key}") and not path.exists()
    assert "No private key found" in refusal(agent, 3, *words, make_alone(tmp_path, key))
    askpass = tmp_path / "askpass"
    askpass.write_text("#!/bin/sh\necho secret\n")
    askpass.chmod(0o755)
    asking = {**os.environ, **agent.extra, "SSH_ASKPASS": str(askpass), "SSH_ASKPASS_REQUIRE": "force"}
    subprocess.run(["ssh-add", "-q", str(key)], env=asking, check=True, stdin=subprocess.DEVNULL)
    for each in (key, key.with_suffix(".pub")):
        agent.run(*words, each)
        said = agent.run("reproduce", path, "--list", "--signers", allow(key)).stdout
        assert said.startswith(f"{path}: signed by {ADA}\n")


def make_alone(folder: Path, key: Path) -> Path:
    """The public key without the private one."""
    path = folder / "alone.pub"
    path.write_bytes(key.with_suffix(".pub").read_bytes())
    return path


def test_a_machine_without_openssh(program: Program, signed: Path, judged: Path, keys: Path) -> None:
    bare = replace(program, extra={"PATH": "/nonexistent"})
    for words in (
        ("reproduce", signed, "--signers", allow(keys / "ada")),
        ("bundle", "1", "--workspace", judged, "-o", signed, "--sign", keys / "ada"),
    ):
        line = refusal(bare, 3, *words)
        assert "need ssh-keygen of OpenSSH" in line and "install openssh-client" in line
