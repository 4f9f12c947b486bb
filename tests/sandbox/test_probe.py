"""The probe finds what holds by doing, and refuses what does not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelproof.errors import SandboxError
from kernelproof.verifier.sandbox import Tier, bwrap, probe
from tests.sandbox.conftest import interpreter

NAMES = (
    *("user_namespace", "pid_namespace", "network", "mounts", "seccomp", "landlock", "uid", "no_new_privs"),
    *("memory", "processes", "files", "kill", "pause"),
)
REPOSITORY = Path(__file__).parents[2]
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root's jobs run as another user")
bubblewrap = pytest.mark.skipif(bwrap.find() is None, reason="bubblewrap is not installed")


@bubblewrap
def test_the_strongest_tier_is_found_and_remembered() -> None:
    found = probe()
    assert found.tier is (Tier.A if os.geteuid() == 0 else Tier.B)
    assert set(found.layers) == set(NAMES)
    assert probe() is found


@pytest.mark.parametrize("forced", ["D", "Z"])
def test_a_forced_tier_cannot_go_below_what_is_safe(forced: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELPROOF_SANDBOX", forced)
    with pytest.raises(SandboxError, match=r"unsafe|is no tier"):
        probe()


def test_tier_d_says_that_it_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELPROOF_SANDBOX", "D")
    if os.geteuid() == 0 and not _reachable(Path(sys.executable).resolve()):
        pytest.skip("this Python lies below a directory that other users cannot enter")
    layers = probe(unsafe=True).layers
    assert layers["mounts"] == layers["landlock"] == layers["pid_namespace"] == "none"


@bubblewrap
@pytest.mark.parametrize(
    ("edit", "missing"),
    [
        ("drop --seccomp", "seccomp"),
        ("show everything", "read"),
        ("keep root", "can't cd"),
        ("start nothing", "bwrap: no"),
    ],
)
def test_a_layer_that_is_switched_off_is_noticed(
    edit: str, missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if edit == "keep root" and os.geteuid() != 0:
        pytest.skip("only root could keep root")
    program = tmp_path / "bwrap"
    program.write_text(WRAPPER.format(edit=edit, bwrap=bwrap.find()))
    program.chmod(0o755)
    monkeypatch.setenv("KERNELPROOF_BWRAP", str(program))
    monkeypatch.setenv("KERNELPROOF_SANDBOX", "A" if os.geteuid() == 0 else "B")
    with pytest.raises(SandboxError, match=missing):
        probe()


WRAPPER = """#!/usr/bin/python3 -I
import os, sys
edit, argv = {edit!r}, sys.argv[1:]
if edit == "start nothing":
    sys.exit("bwrap: no namespaces today")
if "--seccomp" in argv:
    if edit == "drop --seccomp":
        place = argv.index("--seccomp")
        del argv[place : place + 2]
    if edit == "show everything":
        place = argv.index("--remount-ro")  # what lies beside the scratch directory; Python may lie in /tmp
        beside = os.path.dirname(argv[argv.index("gate") + 1])
        argv[place:place] = ["--bind", beside, beside]
    if edit == "keep root":
        place = argv.index("/usr/bin/setpriv")
        del argv[place : argv.index("--", place) + 1]
os.execv({bwrap!r}, [{bwrap!r}, *argv])
"""


def _reachable(path: Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in path.parents)


@pytest.fixture
def clone() -> Iterator[Path]:
    """A directory with an environment's Python in `.venv`, as a clone has it, outside of pytest's own."""
    place = Path(tempfile.mkdtemp(prefix="kernelproof-test-"))
    place.chmod(0o755)
    base = interpreter("C1")
    subprocess.run([base, "-m", "venv", "--without-pip", str(place / ".venv")], check=True)
    yield place
    shutil.rmtree(place)


def _probe_in(clone: Path, tier: str) -> subprocess.CompletedProcess[str]:
    code = "from kernelproof.verifier.sandbox import probe; print('tier', probe(unsafe=True).tier)"
    argv = [str(clone / ".venv/bin/python"), "-c", code]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY / "src"), "KERNELPROOF_SANDBOX": tier}
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False)


@root
@bubblewrap
def test_root_may_clone_below_a_directory_that_only_root_may_enter(clone: Path) -> None:
    clone.chmod(0o700)
    assert _probe_in(clone, "A").stdout == "tier A\n"


@root
@pytest.mark.parametrize(
    ("tier", "closed", "said"),
    [
        pytest.param("A", ".venv/lib", "may not read", marks=bubblewrap),
        ("C1", ".venv/lib", "may not read"),
        ("C1", ".", "may not enter"),
        ("D", ".", "may not enter"),
    ],
)
def test_what_is_closed_to_roots_jobs_is_named_and_the_command_given_opens_it(
    tier: str, closed: str, said: str, clone: Path
) -> None:
    (clone / closed).chmod(0o700)
    refused = _probe_in(clone, tier)
    assert refused.returncode == 1 and f"{said} {clone / closed}" in refused.stderr
    assert ("Install bubblewrap" in refused.stderr) is (tier != "A")  # it would not help there
    command = re.findall(r"Run `([^`]+)`", refused.stderr)[-1]
    assert all(Path(word).is_relative_to(clone) for word in command.split() if word.startswith("/"))
    subprocess.run(["/bin/sh", "-c", command], check=True)
    assert _probe_in(clone, tier).stdout == f"tier {tier}\n"


def test_without_bubblewrap_the_next_tier_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELPROOF_BWRAP", "/no/such/bwrap")
    try:
        found = probe()
    except SandboxError as problem:
        assert "/no/such/bwrap" in str(problem) and "bubblewrap" in str(problem)
    else:
        assert found.tier in (Tier.C1, Tier.C2)
        assert any("/no/such/bwrap" in line for line in found.refusals)


def test_root_of_a_namespace_without_user_ids_for_jobs_is_told_so() -> None:
    prefix = ("unshare", "--user", "--map-root-user")
    if shutil.which("unshare") is None or subprocess.run([*prefix, "true"], capture_output=True).returncode:
        pytest.skip("no user namespaces here")
    code = "from kernelproof.verifier.sandbox import probe; probe()"
    answer = subprocess.run([*prefix, sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.returncode == 1
    assert "tier C1: this user namespace has no user ids 60800 to 61055" in answer.stderr
    assert "run as the ordinary user outside it" in answer.stderr
