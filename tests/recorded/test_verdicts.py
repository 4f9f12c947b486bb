"""Every recorded program, built and judged for real, ends with the status that its note expects."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
import torch

from kernelproof.problems import open_suite
from kernelproof.providers.recording import Record
from kernelproof.types import Status, Verification, VerifySettings
from kernelproof.verifier.engine.engine import Engine
from tests.recorded.records import NO_PROGRAM, expected, extracted, name, records

Verdicts = dict[str, "Future[Verification]"]
TOO_LONG = {"level1/6"}
"""The interpreter takes minutes for a call."""


def programs(backend: str) -> list[Record]:
    """The records that hold a program."""
    return [record for record in records(backend).values() if expected(record) not in NO_PROGRAM]


@contextmanager
def judged(backend: Literal["cuda", "cpp", "triton"], size: str, cache: Path) -> Iterator[Verdicts]:
    """All programs of a backend under way at once: they build beside each other, and are judged in turn."""

    def judge(record: Record) -> Verification:
        source = extracted(record).candidate
        assert source is not None
        # Times depend on what else the machine does, so only the cheat on them is timed.
        timed = expected(record) is Status.CHEATING
        settings = VerifySettings(backend=backend, size=size, measure=timed, measure_seconds=2)
        return engine.verify(source.source, open_suite().find(record.problem), settings)

    with Engine(cache) as engine, ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield {name(record): pool.submit(judge, record) for record in programs(backend)}
        pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def cpp_verdicts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Verdicts]:
    with judged("cpp", "small", tmp_path_factory.mktemp("cache")) as verdicts:
        yield verdicts


@pytest.fixture(scope="module")
def cuda_verdicts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Verdicts]:
    with judged("cuda", "full", tmp_path_factory.mktemp("cache")) as verdicts:
        yield verdicts


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("record", programs("cpp"), ids=name)
def test_cpp(cpp_verdicts: Verdicts, record: Record) -> None:
    verdict = cpp_verdicts[name(record)].result()
    assert verdict.status == expected(record), f"{verdict.reason}\n{verdict.details}"


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("record", programs("cuda"), ids=name)
def test_cuda(cuda_verdicts: Verdicts, record: Record) -> None:
    verdict = cuda_verdicts[name(record)].result()
    assert verdict.status == expected(record), f"{verdict.reason}\n{verdict.details}"


@pytest.fixture(scope="module")
def triton_verdicts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Verdicts]:
    size = "full" if torch.cuda.is_available() else "small"
    with judged("triton", size, tmp_path_factory.mktemp("cache")) as verdicts:
        yield verdicts


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("record", programs("triton"), ids=name)
def test_triton(triton_verdicts: Verdicts, record: Record) -> None:
    verdict = triton_verdicts[name(record)].result()
    assert verdict.status == expected(record), f"{verdict.reason}\n{verdict.details}"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(torch.cuda.is_available(), reason="interprets where there is no GPU")
@pytest.mark.parametrize("record", [r for r in programs("triton") if r.problem not in TOO_LONG], ids=name)
def test_triton_interpreted(triton_verdicts: Verdicts, record: Record) -> None:
    verdict = triton_verdicts[name(record)].result()
    unseen = {Status.BUILT_NOT_RUN} if expected(record) is Status.CORRECT else set()
    assert verdict.status in {expected(record)} | unseen, f"{verdict.reason}\n{verdict.details}"
