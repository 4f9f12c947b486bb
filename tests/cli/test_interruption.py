"""Ctrl-C and SIGKILL at any moment: nothing is lost or doubled, nothing left; the same command goes on."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from kernelproof.types import Status
from tests.cli import material
from tests.cli.material import answer, fenced
from tests.cli.program import Program
from tests.providers.server import Step, serve

QUICK = ("--backend", "cpp", "--no-measure", "--trials", "1")
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


class Batch:
    """A batch with every kind of end, over extensions of its own that nobody has built yet."""

    def __init__(self, program: Program, suite: Path, folder: Path, *, samples: int) -> None:
        self.program, self.folder = program, folder
        answers: material.Answers = {}
        self.expected: dict[tuple[str, int, int], Status] = {}
        kinds = (
            (material.right, Status.CORRECT, "right"),
            (material.wrong, Status.WRONG_OUTPUT, "wrong"),
            (material.uncompilable, Status.BUILD_ERROR, "uncompilable"),
        )
        for sample in range(samples):
            source, status, name = kinds[sample % len(kinds)]
            self.expected["level1/1", sample, 1] = status
            answers["level1/1", sample, 1] = answer(fenced(source(f"{name}_{sample}")))
            if status is not Status.CORRECT:
                answers["level1/1", sample, 2] = answer(fenced(material.right(f"mended_{sample}")))
                self.expected["level1/1", sample, 2] = Status.CORRECT
        recording = material.recording(folder / "batch.jsonl", answers)
        self.command = ("generate", "level1/1", "--suite", suite, "--model", f"replay:{recording}")
        self.command += ("--samples", samples, "--turns", 2, *QUICK)

    def complete(self) -> None:
        """Runs the command to its end and checks that each attempt is there once, judged once."""
        self.program.run(*self.command)
        assert self.program.statuses() == self.expected
        for attempt in self.program.attempts():
            assert [r.error for r in attempt.responses] == [None]
            assert [v.kind for v in attempt.verifications] == ["first"]
            assert attempt.verifications[0].verification.status is attempt.status
            assert attempt.alterations == ()
        assert self.program.left_after() == {} and self.program.scratch() == []


@pytest.mark.slow
def test_killed_twice(program: Program, suite: Path, tmp_path: Path) -> None:
    program.cache = tmp_path / "cache"
    batch = Batch(program, suite, tmp_path, samples=2)
    program.kill_at_random(batch.command, kills=2, longest_s=8.0)
    batch.complete()


@pytest.mark.thorough
@pytest.mark.timeout(1200)
def test_killed_ten_times_ends_as_an_undisturbed_run(program: Program, suite: Path, tmp_path: Path) -> None:
    program.cache = tmp_path / "cache"
    batch = Batch(program, suite, tmp_path, samples=12)
    finished = program.kill_at_random(batch.command, kills=10, longest_s=10.0)
    batch.complete()
    print(f"{10 - finished} of 10 kills hit a running batch of {len(batch.expected)} attempts")
    assert finished == 0, "the batch was over before the tenth kill: give it more samples"
    killed = program.statuses()
    program.workspace = tmp_path / "undisturbed"
    program.workspace.mkdir()
    batch.complete()
    assert program.statuses() == killed
