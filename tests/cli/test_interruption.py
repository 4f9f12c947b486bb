"""Ctrl-C and SIGKILL at any moment: nothing is lost or doubled, nothing left; the same command goes on."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from kernelproof.types import Status
from tests.cli import material
from tests.cli.material import QUICK, answer, fenced
from tests.cli.program import Program
from tests.providers.server import Step, serve

PROMPTLY_S = 6.0
"""An interrupted command has to be over by then, on a loaded machine too."""
LONG, ENDLESS = 2_000_000, 100_000_000
"""Steps for a compiler: five seconds of its time, and more than any test waits for."""


@pytest.mark.clock
@pytest.mark.slow
def test_an_interrupted_batch_ends_at_once_and_goes_on_later(program: Program, suite: Path) -> None:
    program.cache = program.workspace.parent / "cache"  # what is interrupted here is the compilation
    slow = material.slow_to_compile("slow", LONG)
    with serve(Step(answer(fenced(slow)))) as server:
        program.extra = {"OPENAI_API_KEY": "none"}
        command = ("generate", "level1/1", "--suite", suite, "--model", "openai:test")
        command += ("--base-url", server.url, *QUICK)
        process = program.start(*command)
        program.wait_for_process("cc1plus", process)
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to everything in the session
        stdout, stderr = process.communicate(timeout=60)
        assert time.monotonic() - began < PROMPTLY_S
        assert process.returncode == 130, stderr
        assert stderr == "" and "1 not finished: run the same command again" in stdout
        assert program.left_after() == {} and program.scratch() == []
        assert program.statuses() == {("level1/1", 0, 1): None}
        program.run(*command)
        assert program.statuses() == {("level1/1", 0, 1): Status.CORRECT}
        assert len(server.requests) == 1


@pytest.mark.ci
@pytest.mark.clock
def test_a_terminated_batch_ends_as_well(program: Program, suite: Path, tmp_path: Path) -> None:
    endless = fenced(material.slow_to_compile("endless", ENDLESS))
    file = material.recording(tmp_path / "endless.jsonl", {("level1/1", 0, 1): answer(endless)})
    process = program.start("generate", "level1/1", "--suite", suite, "--model", f"replay:{file}", *QUICK)
    program.wait_for_process("cc1plus", process)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert time.monotonic() - began < PROMPTLY_S
    assert process.returncode == 130
    assert program.left_after() == {} and program.scratch() == []


@pytest.mark.ci
@pytest.mark.clock
def test_an_interrupted_verify_ends_at_once_and_stores_nothing(
    program: Program, suite: Path, tmp_path: Path
) -> None:
    program.cache = tmp_path / "cache"
    file = tmp_path / "slow.py"
    file.write_text(material.slow_to_compile("endless_verify", ENDLESS))
    process = program.start("verify", file, "--problem", "level1/1", "--suite", suite, *QUICK)
    program.wait_for_process("cc1plus", process)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert time.monotonic() - began < PROMPTLY_S
    assert process.returncode == 130 and "Traceback" not in stderr
    assert program.left_after() == {} and program.scratch() == []
    assert not (program.workspace / "generated").exists() and program.attempts() == []
