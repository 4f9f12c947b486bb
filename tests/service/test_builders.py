"""Builders and judges as processes of their own, and an artefact store between them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernelproof.client import Candidate, Client
from tests.cli import material
from tests.cli.program import Program, kill
from tests.service.conftest import NO_PROGRAM, serving
from tests.service.test_launchers import until


@contextmanager
def daemons(program: Program, *roles: str) -> Iterator[None]:
    """Daemons of these roles that share a directory of artefacts."""
    running = [
        program.start("service", "workers", "--role", role, "--artefacts", "artefacts") for role in roles
    ]
    try:
        yield
    finally:
        for each in running:
            kill(each)


STATUSES = ["no_code", "wrong_output", "build_error", "correct"]


@pytest.mark.ci
def test_what_builders_publish_gets_the_verdicts_that_a_worker_gives(program: Program, suite: Path) -> None:
    texts = [NO_PROGRAM, material.wrong("wrong"), material.uncompilable(), material.right()]
    candidates = [Candidate(text, "relu") for text in texts]
    with serving(program, suite, "--no-worker") as service, Client(service.url) as client:
        sent = client.submit(candidates)
        with daemons(program, "build", "judge"):
            apart = client.evaluate_many(candidates)
            assert [client.get(each.id).ended for each in sent] == [True] * 4
        with daemons(program, "all"):
            together = client.evaluate_many(candidates)
    assert [each.status for each in apart] == STATUSES
    for one, other in zip(apart, together, strict=True):
        assert (one.status, one.raw["result"]["reason"]) == (other.status, other.raw["result"]["reason"])


@pytest.mark.ci
def test_a_judge_whose_artefacts_are_gone_or_damaged_builds_by_itself(program: Program, suite: Path) -> None:
    texts = [NO_PROGRAM, material.wrong("gone"), material.uncompilable(), material.right()]
    with serving(program, suite, "--no-worker") as service, Client(service.url) as client:
        sent = client.submit([Candidate(text, "relu") for text in texts])
        with daemons(program, "build"):
            until(lambda: all(client.get(each.id).state == "built" for each in sent), "not all are built")
        entries = [path for path in (program.workspace / "artefacts").glob("??/*") if path.is_file()]
        assert len(entries) == 3
        entries[0].unlink()
        for entry in entries[1:]:
            entry.write_bytes(entry.read_bytes()[:-1])
        with daemons(program, "judge"):
            assert [client.wait(each.id).status for each in sent] == STATUSES
