"""The probe finds what holds by doing, and refuses what does not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.errors import SandboxError
from pipeline.sandbox import Tier, bwrap, probe

NAMES = (
    *("user_namespace", "pid_namespace", "network", "mounts", "seccomp", "landlock", "uid", "no_new_privs"),
    *("memory", "processes", "files", "kill", "pause"),
)
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
        place = argv.index("--remount-ro")
        argv[place:place] = ["--bind", "/tmp", "/tmp"]
    if edit == "keep root":
        place = argv.index("/usr/bin/setpriv")
        del argv[place : argv.index("--", place) + 1]
os.execv({bwrap!r}, [{bwrap!r}, *argv])
"""


def _reachable(path: Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in path.parents)


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
    code = "from pipeline.sandbox import probe; probe()"
    answer = subprocess.run([*prefix, sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.returncode == 1
    assert "tier C1: this user namespace has no user ids 60800 to 61055" in answer.stderr
    assert "run as the ordinary user outside it" in answer.stderr
