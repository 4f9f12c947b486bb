"""`doctor`: what works here, what is missing, and what to do about it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program
from tests.loopback import Quiet, serving


def findings(program: Program, *options: str, code: int = 0) -> dict[str, dict[str, Any]]:
    done = program.run("doctor", *options, "--json", code=code)
    return {finding["name"]: finding for finding in json.loads(done.stdout)}


@contextmanager
def models(status: int) -> Iterator[tuple[str, list[str | None]]]:
    """A server that answers GET /v1/models with `status`; its URL and the keys that it was shown."""
    keys: list[str | None] = []

    class Handler(Quiet):
        def do_GET(self) -> None:
            keys.append(self.headers["authorization"])
            self.send_response(status if self.path == "/v1/models" else 404)
            self.end_headers()
            self.wfile.write(b'{"data": []}')

    with serving(Handler) as url:
        yield f"{url}/v1", keys


@pytest.mark.ci
def test_this_machine_works(program: Program) -> None:
    found = findings(program)
    for name in ("kernelproof", "torch", "c++", "sandbox", "database", "noise"):
        assert found[name]["ok"], found[name]
    assert "against itself" in found["noise"]["seen"]
    assert not found["model"]["ok"] and "replay:demo needs neither" in found["model"]["remedy"]
    assert list(program.workspace.iterdir()) == []
    assert program.left_after() == {} and program.scratch() == []


def test_for_people(program: Program) -> None:
    lines = program.run("doctor", "--no-noise").stdout.splitlines()
    assert any(line.startswith("ok       sandbox      tier ") for line in lines)
    assert any(line.startswith("missing  model ") for line in lines)
    assert not any("noise" in line for line in lines)


def test_without_a_compiler_it_says_what_is_missing(program: Program, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bwrap", "sh"):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    program.extra = {"PATH": str(tools), "CXX": "", "CC": "", "CUDA_HOME": "", "CUDA_PATH": ""}
    found = findings(program, "--no-noise", code=3)["c++"]
    assert not found["ok"] and found["essential"]
    assert "No C++ compiler: install one" in found["seen"]


def test_a_model_server_that_answers(program: Program) -> None:
    with models(200) as (url, keys):
        program.extra = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-doctor"}
        found = findings(program, "--no-noise")["model"]
    assert found["ok"] and found["seen"] == f"{url} answers (200)"
    assert keys == ["Bearer sk-doctor"]


def test_a_model_server_that_refuses_or_is_not_there(program: Program) -> None:
    with models(401) as (url, _):
        program.extra = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-doctor"}
        refused = findings(program, "--no-noise")["model"]
    gone = findings(program, "--no-noise")["model"]
    assert not refused["ok"] and "401" in refused["seen"] and "OPENAI_API_KEY" in refused["remedy"]
    assert not gone["ok"] and "refused" in gone["seen"]
    assert "sk-doctor" not in str(refused) + str(gone)


def test_a_database_that_cannot_be_used_is_said(program: Program) -> None:
    (program.workspace / "db").mkdir()
    (program.workspace / "db" / "attempts.sqlite").write_text("this is no database\n" * 500)
    found = findings(program, "--no-noise")["database"]
    assert not found["ok"] and "not a SQLite database" in found["seen"]
