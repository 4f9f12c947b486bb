"""Sanitizers: g++'s find planted faults in C++, accuse no honest candidate, and change no verdict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelproof.choices import Flag
from kernelproof.errors import MachineError
from kernelproof.problems import open_suite
from kernelproof.types import Check, CheckOutcome, Problem, Status, Verification, VerifySettings
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.engine import sanitizers
from kernelproof.verifier.engine.engine import Engine, ended_early
from kernelproof.verifier.engine.sanitizers import address_reports, kernel_reports, other_batch
from kernelproof.verifier.status_rules import Cause
from tests.cli import material

READ, WRITE, UNDEFINED = Flag.OUT_OF_BOUNDS_READ, Flag.OUT_OF_BOUNDS_WRITE, Flag.UNDEFINED_BEHAVIOUR
PLAIN = """
import os, sys, time
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        {body}
        return x.clamp(min=0)
"""


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return open_suite(material.problems(tmp_path_factory.mktemp("suite") / "problems")).find("relu")


@pytest.fixture(scope="module")
def engine(cache: Path) -> Iterator[Engine]:
    with Engine(cache) as engine:
        yield engine


def judged(source: str, problem: Problem, cause: Cause = Cause.NOTHING_FAILED) -> Verification:
    """As a verification that ended for this cause leaves it."""
    settings = VerifySettings(backend="cpp", measure=False)
    request = VerifyRequest(problem=problem, source=source, settings=settings, device="cpu")
    return ended_early(request, cause.ended("it was judged before"))


def sanitized(engine: Engine, source: str, problem: Problem) -> tuple[Verification, Check]:
    verification = engine.sanitize(source, problem, judged(source, problem))
    (check,) = verification.checks
    assert check.name == "sanitizer: address, undefined"
    assert verification.status is Status.CORRECT and verification.stage_seconds.keys() == {"sanitize"}
    return verification, check


@pytest.mark.ci
@pytest.mark.parametrize(
    ("more", "flag", "words"),
    [
        ("", None, "clean"),
        ("volatile float seen = x[count]; (void)seen;", READ, "heap-buffer-overflow READ of size 4"),
        ("y[count] = 1.0f;", WRITE, "heap-buffer-overflow WRITE of size 4"),
        ("volatile int most = 2147483647; most = most + 1;", UNDEFINED, "signed integer overflow"),
    ],
    ids=["honest", "read", "write", "undefined"],
)
def test_a_planted_fault_is_a_flag_and_no_verdict(
    engine: Engine, problem: Problem, more: str, flag: Flag | None, words: str
) -> None:
    source = material.candidate("planted", f"value = std::max(value, 0.0f); {more}")
    verification, check = sanitized(engine, source, problem)
    assert words in check.seen and "/" not in check.seen
    assert verification.flags == ((flag,) if flag else ())
    assert check.outcome is (CheckOutcome.FAIL if flag else CheckOutcome.PASS)
    assert check.figures.get("classes", []) == ([flag.value] if flag else [])
    if flag:
        assert any("main.cpp:" in line for line in check.figures["evidence"])


@pytest.mark.ci
@pytest.mark.parametrize(
    ("body", "words"),
    [("os._exit(3)", "the process ended"), ("raise ValueError('no \\x1b[31m')", "it raised ValueError: no")],
)
def test_an_end_without_a_report_accuses_nobody(
    engine: Engine, problem: Problem, body: str, words: str
) -> None:
    verification, check = sanitized(engine, PLAIN.format(body=body), problem)
    assert check.outcome is CheckOutcome.NOT_APPLICABLE and verification.flags == ()
    assert f"not run to its end: {words}" in check.seen and "\x1b" not in check.seen


@pytest.mark.ci
def test_where_the_declared_size_takes_too_long_a_known_batch_is_called(
    engine: Engine, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sanitizers, "SECONDS", 15.0)
    source = PLAIN.format(body="time.sleep(0 if x.shape == (4, 257) else 60)")
    right = Check(name="probe: batch 65", outcome=CheckOutcome.PASS, asked="", seen="it is")
    before = judged(source, problem).model_copy(
        update={"checks": (right,), "inputs": ({"shape": [64, 257]},)}
    )
    _, check = engine.sanitize(source, problem, before).checks
    assert check.seen.startswith("clean, on the first 4 elements of the batch, as it took longer than 15 s")


def test_only_a_candidate_that_is_right_at_another_batch_gets_one(problem: Problem) -> None:
    right = Check(name="probe: batch 65", outcome=CheckOutcome.PASS, asked="", seen="it is")
    known = {"checks": (right,), "inputs": ({"shape": [64, 257]},)}
    verification = judged("", problem)
    assert other_batch(verification) is None
    assert other_batch(verification.model_copy(update=known)) == 4
    assert other_batch(verification.model_copy(update={**known, "flags": (Flag.SHAPE_SPECIALISED,)})) is None
    assert other_batch(verification.model_copy(update={**known, "inputs": ({"shape": [3, 257]},)})) is None


def test_a_candidate_that_was_never_called_is_not_called_now(engine: Engine, problem: Problem) -> None:
    verification = engine.sanitize("", problem, judged("", problem, Cause.RAISED_IN_LOAD))
    (check,) = verification.checks
    assert check.outcome is CheckOutcome.NOT_APPLICABLE
    assert check.seen == "not run: it ended as load_error, before any call"


def test_a_compiler_without_sanitizers_is_the_machines_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "c++"
    compiler.write_text('#!/bin/sh\necho "${1#-print-file-name=}"\n')  # as gcc says that it has none
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(MachineError, match=r"has no libasan\.so: install") as raised:
        sanitizers.sanitizers_for("cpp")
    assert raised.value.exit_code == 3


def test_what_a_process_prints_is_cut_and_cleaned() -> None:
    said = f"==7==ERROR: AddressSanitizer: \x1b[31m\u202e{'x' * 9000}\nREAD of size 4 at 0x7f00deadbeef\n"
    (report,) = address_reports(said)
    assert report.flag is READ and len(report.line) <= 200 and report.line.isprintable()


KERNEL_SAID = """
========= COMPUTE-SANITIZER
========= Invalid __global__ {access} of size 4 bytes
=========     at relu(const float *, float *, int)+0x160 in cuda.cu:6
=========     by thread (31,0,0) in block (7,0,0)
=========     Address 0x7f6510c00400 is {where}
=========
========= ERROR SUMMARY: 1 error
"""


@pytest.mark.parametrize(
    ("said", "flag"),
    [
        (KERNEL_SAID.format(access="read", where="out of bounds"), READ),
        (KERNEL_SAID.format(access="write", where="out of bounds"), WRITE),
        (KERNEL_SAID.format(access="atomic", where="out of bounds"), WRITE),
        (KERNEL_SAID.format(access="read", where="misaligned"), UNDEFINED),
        ("========= Error: Race reported between Write access at sum(int *)+0x90\n", Flag.RACE),
        ("========= Uninitialized __global__ memory read of size 4 bytes\n", Flag.UNINITIALISED),
        ("========= Barrier error detected. Divergent thread(s) in block\n", UNDEFINED),
    ],
)
def test_each_tool_of_compute_sanitizer_is_understood(said: str, flag: Flag) -> None:
    (report,) = kernel_reports(said)
    assert report.flag is flag


def test_a_librarys_kernels_and_a_candidates_words_are_no_reports() -> None:
    library = KERNEL_SAID.format(access="read", where="out of bounds").replace("relu(", "void at::native::f(")
    said = "Invalid __global__ read of size 4 bytes\n========= ERROR SUMMARY: 0 errors\n"
    assert not list(kernel_reports(library + said))
