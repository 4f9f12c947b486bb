"""The service as its callers find it: a real process, its worker a process of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kernelproof.db.store import Store
from tests.cli.conftest import one_attempt, program, stored, suite, working_in
from tests.cli.program import Program, kill
from tests.db.samples import new_store

__all__ = ["one_attempt", "program", "stored", "suite"]

NO_PROGRAM = "an answer that holds no program"


@pytest.fixture
def store(tmp_path: Path, empty_database: Path) -> Iterator[Store]:
    with new_store(tmp_path, empty_database) as opened:
        yield opened


@dataclass
class Running:
    """A running service."""

    url: str
    program: Program
    process: Any

    def ask(self, method: str, path: str, **request: Any) -> httpx2.Response:
        """One request. Fails on a failure of the service's."""
        answer = httpx2.request(method, self.url + path, timeout=60, **request)
        assert answer.status_code != 500, answer.text
        return answer

    def send(self, wait: float = 60, **body: Any) -> dict[str, Any]:
        """One evaluation, as it is after so many seconds or at its end."""
        sent = {"problem": "relu", "source": NO_PROGRAM, **body}
        answer = self.ask("POST", "/v1/evaluations", params={"wait": wait}, json=sent)
        assert answer.status_code in (200, 202), answer.text
        found: dict[str, Any] = answer.json()
        return found


@contextmanager
def serving(program: Program, suite: Path, *options: object) -> Iterator[Running]:
    """The service in a program's workspace, with a small suite and untimed verifications."""
    usual = ("--suite", suite, "--backend", "cpp", "--trials", 1, "--no-measure", "--port", 0)
    process = program.start("service", "api", *usual, *options)
    assert process.stdout is not None and process.stderr is not None
    try:
        line = process.stdout.readline()
        found = re.match(r"(http://\S+) serves", line)
        assert found is not None, line + process.stderr.read()
        yield Running(found[1], program, process)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(20)
            finally:
                kill(process)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, suite: Path, cache: Path) -> Iterator[Running]:
    """A service with a worker, whose callers need no token."""
    workspace = tmp_path_factory.mktemp("service") / "workspace"
    with working_in(workspace, cache) as program, serving(program, suite, "--accept-references") as running:
        yield running
