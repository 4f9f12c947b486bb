"""Every recorded program, built and judged for real, ends with the status that its note expects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest

from pipeline.execution.engine import Engine
from pipeline.nouns import Status, VerifySettings
from pipeline.problems import open_suite
from pipeline.providers.recording import Record
from tests.recorded.records import NO_PROGRAM, expected, extracted, name, records


def programs(backend: str) -> list[Record]:
    """The records that hold a program."""
    return [record for record in records(backend).values() if expected(record) not in NO_PROGRAM]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with Engine(tmp_path_factory.mktemp("cache")) as engine:
        yield engine


def check(engine: Engine, record: Record, backend: Literal["cuda", "cpp"], size: str) -> None:
    source = extracted(record).candidate
    assert source is not None
    # Times depend on what else the machine does, so only the cheat on them is timed.
    timed = expected(record) is Status.CHEATING
    settings = VerifySettings(backend=backend, size=size, measure=timed, measure_seconds=2)
    verdict = engine.verify(source.source, open_suite().find(record.problem), settings)
    assert verdict.status == expected(record), f"{verdict.reason}\n{verdict.details}"


@pytest.mark.slow
@pytest.mark.parametrize("record", programs("cpp"), ids=name)
def test_cpp(engine: Engine, record: Record) -> None:
    check(engine, record, "cpp", "small")


@pytest.mark.gpu
@pytest.mark.timeout(900)
@pytest.mark.parametrize("record", programs("cuda"), ids=name)
def test_cuda(engine: Engine, record: Record) -> None:
    check(engine, record, "cuda", "full")
