"""Drivers: one harness process for each tier, as root or as an ordinary user, whichever the tier wants."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelproof.verifier.sandbox import bwrap

HERE = Path(__file__).parent
PIPELINE = HERE.parents[1] / "pipeline"
ORDINARY = 65534
ROOT_TIERS = ("A", "C1")


class Driver:
    """A running `driver.py`; `ask` runs one fault script and returns what it answered."""

    def __init__(self, tier: str) -> None:
        self.tier = tier
        self.room = Path(tempfile.mkdtemp(prefix="kernelproof-test-"))
        self.room.chmod(0o755)
        shutil.copytree(PIPELINE / "verifier/sandbox", self.room / "code/kernelproof/verifier/sandbox")
        shutil.copy(PIPELINE / "errors.py", self.room / "code/kernelproof")
        (self.room / "code/kernelproof/__init__.py").touch()
        shutil.copytree(HERE / "faults", self.room / "faults")
        shutil.copy(HERE / "driver.py", self.room)
        (self.room / "own").mkdir()
        command = [interpreter(tier), str(self.room / "driver.py"), str(self.room / "own")]
        if os.geteuid() == 0 and tier not in ROOT_TIERS:
            os.chown(self.room / "own", ORDINARY, ORDINARY)
            drop = [f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", "--"]
            command = ["/usr/bin/setpriv", *drop, *command]
        (self.room / "own").chmod(0o755)
        self.process = subprocess.Popen(
            command,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(self.room / "code"),
                "KERNELPROOF_SANDBOX": tier,
                "KERNELPROOF_BWRAP": bwrap.find() or "bwrap",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.offered = self._read()

    def ask(self, fault: str, *, detach: bool = False, **limits: float) -> dict[str, Any]:
        mark = uuid.uuid4().hex
        script = str(self.room / "faults" / f"{fault}.py")
        request = {"script": script, "limits": limits, "mark": mark, "detach": detach}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return {**self._read(), "mark": mark}

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline()
        if not line:
            pytest.fail(f"the harness has died: {self.process.stderr.read()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        shutil.rmtree(self.room, ignore_errors=True)


def interpreter(tier: str) -> str:
    """One that the tier's user can reach; skips when there is none."""
    if os.geteuid() != 0 or tier == "A":
        return sys.executable
    for name in (sys.executable, "/usr/bin/python3"):
        real = Path(name).resolve()
        if all(
            parent.stat().st_mode & stat.S_IXOTH for path in (Path(name), real) for parent in path.parents
        ):
            version = subprocess.run(
                [name, "-c", "import sys; print(sys.version_info >= (3, 11))"],
                capture_output=True,
                text=True,
                check=False,
            )
            if version.stdout.strip() == "True":
                return name
    pytest.skip("every Python 3.11 here lies below a directory that other users cannot enter")


def why_not(tier: str) -> str | None:
    """Why this machine cannot offer a tier to these tests."""
    if tier in ROOT_TIERS and os.geteuid() != 0:
        return "needs root"
    if tier in ("A", "B") and bwrap.find() is None:
        return "bubblewrap is not installed"
    return None


@pytest.fixture(scope="session")
def open_driver() -> Iterator[Callable[[str], Driver]]:
    """A driver for a tier, kept for all tests; one whose harness died is replaced."""
    drivers: dict[str, Driver] = {}

    def get(tier: str) -> Driver:
        reason = why_not(tier)
        if reason:
            pytest.skip(f"tier {tier}: {reason}")
        if tier in drivers and drivers[tier].process.poll() is not None:
            drivers.pop(tier).close()
        if tier not in drivers:
            drivers[tier] = Driver(tier)
        return drivers[tier]

    yield get
    for driver in drivers.values():
        driver.close()
