"""The same text gets the same status, and the same program is found in it, through every door."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner

from kernelproof import Submission, Verifier, verify
from kernelproof.cli.app import command_line
from kernelproof.db.views import StoredAttempt
from kernelproof.hashing import sha256_text
from kernelproof.types import Status, Verification
from tests.cli import material
from tests.cli.material import QUICK
from tests.cli.program import Program

SETTINGS: dict[str, Any] = {"backend": "cpp", "measure": False, "trials": 1}

PLAIN = material.right().replace("def forward(self, x):", "def backward(self, x):")
"""A program that fits no problem, so that judging it takes no build: there is no forward."""
OTHER = PLAIN.replace("ModelNew(nn.Module):", "ModelNew(nn.Module):\n    NUMBER = 2\n")
CUT = PLAIN[: PLAIN.index("y[i] = value")]
UNPARSABLE = PLAIN.replace("def backward(self, x):", "def backward(self x):")
FENCE = "```"


@dataclass(frozen=True)
class Source:
    """A text, how it ends, and the program that is found in it."""

    text: str
    status: Status
    found: str | None = None


def fits_not(text: str, found: str = PLAIN) -> Source:
    return Source(text, Status.CONTRACT_ERROR, found)


def no_syntax(text: str, found: str) -> Source:
    return Source(text, Status.SYNTAX_ERROR, found)


SOURCES = {
    "plain": fits_not(PLAIN),
    "fenced": fits_not(material.fenced(PLAIN)),
    "two fences": fits_not(
        f"A draft:\n{FENCE}python\n{OTHER}{FENCE}\nBetter:\n{FENCE}python\n{PLAIN}{FENCE}\n"
    ),
    "prose around no fence": fits_not(f"Sure! The model:\n\n{PLAIN}\nThis is fast, it's one pass.\n"),
    "byte-order mark": fits_not(f"\ufeff{PLAIN}"),
    "CRLF": fits_not(PLAIN.replace("\n", "\r\n"), PLAIN.replace("\n", "\r\n")),
    "NUL": fits_not(PLAIN.replace("class ModelNew", "cl\0ass ModelNew")),
    "terminal escapes": fits_not(f"\x1b[1mHere\x1b[0m it is.\n{FENCE}python\n{PLAIN}{FENCE}\n"),
    "thinking": fits_not(f"<think>\n{FENCE}python\n{OTHER}{FENCE}\n</think>\n{material.fenced(PLAIN)}"),
    "thinking that never ends": Source(f"<think>\n{material.fenced(PLAIN)}", Status.TRUNCATED),
    "syntax error": no_syntax(UNPARSABLE, UNPARSABLE),
    "unclosed string": no_syntax(CUT, CUT),
    "unclosed fence, cut": Source(f"Here is the kernel:\n\n{FENCE}python\n{CUT}", Status.TRUNCATED),
    "only the reference": fits_not(material.RELU, material.RELU),
    "JSON": fits_not(json.dumps({"code": PLAIN})),
    "empty": Source("", Status.EMPTY),
    "prose": Source("Kernels are nice.\n", Status.NO_CODE),
    "lone surrogate": fits_not(f"\ud800\n{material.fenced(PLAIN)}"),
}
IN_FILES = {name: source for name, source in SOURCES.items() if name != "lone surrogate"}
"""A file in UTF-8 holds no lone surrogates; JSON and Python's texts do."""

Ends = dict[str, tuple[str, str | None]]
"""By name: the status, and the SHA-256 of what was found."""

EXPECTED: Ends = {
    name: (source.status.value, None if source.found is None else sha256_text(source.found))
    for name, source in SOURCES.items()
}


def expected(names: Iterable[str]) -> Ends:
    return {name: EXPECTED[name] for name in names}


def file_name(name: str) -> str:
    return f"{name.replace(' ', '_')}.txt"


@pytest.fixture(autouse=True)
def here(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that run in this process work in the program's workspace, too."""
    for name in ("KERNELPROOF_WORKSPACE", "KERNELPROOF_CACHE"):
        monkeypatch.setenv(name, program.environment[name])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """All sources that a file can hold, below their problem's folder."""
    place = tmp_path / "given" / "relu"
    place.mkdir(parents=True)
    for name, source in IN_FILES.items():
        (place / file_name(name)).write_bytes(source.text.encode())
    return place.parent


def printed(output: str) -> tuple[str, str | None]:
    found = json.loads(output)
    return found["status"], (found["verification"] or {}).get("candidate_sha256")


def verified(*arguments: object, text: str | None = None) -> tuple[str, str | None]:
    words = ["verify", *map(str, arguments), "--no-store", "--json", *QUICK]
    given = None if text is None else text.encode()
    return printed(CliRunner().invoke(command_line(), words, input=given).stdout)


def as_shown(verification: Verification) -> tuple[str, str | None]:
    return verification.status.value, verification.candidate_sha256


def test_a_file_and_standard_input(folder: Path, suite: Path) -> None:
    usual = ("--problem", "relu", "--suite", suite)
    for name in ("plain", "CRLF", "thinking", "prose", "empty"):
        assert verified(folder / "relu" / file_name(name), *usual) == EXPECTED[name]
        assert verified("-", *usual, text=IN_FILES[name].text) == EXPECTED[name]


def as_stored(attempt: StoredAttempt) -> tuple[str, str | None]:
    assert attempt.status is not None
    return attempt.status.value, None if attempt.source is None else sha256_text(attempt.source)


def stored(program: Program) -> list[tuple[str, str | None]]:
    """How the attempts ended, in the order in which they were stored, with what was found and is kept."""
    return [as_stored(attempt) for attempt in program.attempts()]


def test_a_folder(program: Program, folder: Path, suite: Path) -> None:
    done = program.run("verify", folder, "--suite", suite, "--json", *QUICK, code=1)
    ends = {json.loads(line)["id"]: printed(line) for line in done.stdout.splitlines()}
    assert ends == {f"relu/{file_name(name)}": end for name, end in expected(IN_FILES).items()}
    assert sorted(map(str, stored(program))) == sorted(map(str, ends.values()))


def test_lines_of_sources_responses_and_bodies(program: Program, tmp_path: Path, suite: Path) -> None:
    given = []
    for name, source in SOURCES.items():
        for kind, value in (
            ("source", source.text),
            ("response", source.text),
            ("body", material.answer(source.text)),
        ):
            field = "response" if kind == "body" else kind
            given.append({"problem": "relu", "id": f"{kind} {name}", field: value})
    lines = tmp_path / "given.jsonl"
    lines.write_text("".join(json.dumps(one) + "\n" for one in given))
    done = program.run("verify", lines, "--suite", suite, "--json", *QUICK, code=1)
    ends = {json.loads(line)["id"]: printed(line) for line in done.stdout.splitlines()}
    for kind in ("source", "response", "body"):
        assert {name: ends[f"{kind} {name}"] for name in SOURCES} == EXPECTED


def test_python(program: Program, folder: Path, suite: Path, cache: Path) -> None:
    place: dict[str, Any] = {"suite": suite, "cache": cache, **SETTINGS}
    texts = {name: as_shown(verify(source.text, "relu", **place)) for name, source in SOURCES.items()}
    assert texts == EXPECTED
    files = {name: as_shown(verify(folder / "relu" / file_name(name), "relu", **place)) for name in IN_FILES}
    assert files == expected(IN_FILES)

    async def many() -> Ends:
        given = [Submission(source.text, "relu", name) for name, source in SOURCES.items()]
        async with Verifier(**place) as verifier:
            return {
                result.candidate.id: as_shown(result.verification)
                async for result in verifier.verify_many(given)
            }

    assert anyio.run(many) == EXPECTED
    assert list(program.workspace.iterdir()) == [], "nothing is stored"


@pytest.mark.parametrize("finish_reason", ["stop", None])
def test_generate(program: Program, tmp_path: Path, suite: Path, finish_reason: str | None) -> None:
    answers: material.Answers = {}
    for sample, source in enumerate(SOURCES.values()):
        answers["level1/1", sample, 1] = material.answer(source.text)
        answers["level1/1", sample, 1]["choices"][0]["finish_reason"] = finish_reason
    model = f"replay:{material.recording(tmp_path / 'all.jsonl', answers)}"
    command = ("generate", "level1/1", "--suite", suite, "--model", model, *QUICK)
    program.run(*command, "--samples", len(SOURCES), code=None)
    by_sample = sorted(program.attempts(), key=lambda attempt: attempt.key.sample)
    assert dict(zip(SOURCES, map(as_stored, by_sample), strict=True)) == EXPECTED


@pytest.mark.ci
def test_a_program_that_runs(program: Program, tmp_path: Path, suite: Path) -> None:
    """The same through all doors, with a build and a referee."""
    right = sha256_text(material.right())
    text = material.fenced(material.right())
    (tmp_path / "given" / "relu").mkdir(parents=True)
    (tmp_path / "given" / "relu" / "a.md").write_text(text)
    lines = tmp_path / "given.jsonl"
    lines.write_text(json.dumps({"problem": "relu", "response": text}) + "\n")
    for given in (tmp_path / "given", lines, tmp_path / "given" / "relu" / "a.md"):
        problem = ("--problem", "relu") if given.suffix == ".md" else ()
        done = program.run("verify", given, *problem, "--suite", suite, "--json", *QUICK)
        assert printed(done.stdout) == ("correct", right)
    assert verified("-", "--problem", "relu", "--suite", suite, text=text) == ("correct", right)
    verdict = verify(text, "relu", suite=suite, cache=program.cache, **SETTINGS)
    assert as_shown(verdict) == ("correct", right)
    answers: material.Answers = {("level1/1", 0, 1): material.answer(text)}
    model = f"replay:{material.recording(tmp_path / 'one.jsonl', answers)}"
    program.run("generate", "level1/1", "--suite", suite, "--model", model, *QUICK)
    assert stored(program)[-1] == ("correct", right)


CUT_BY_SERVER = {
    "a whole program": PLAIN,
    "an unclosed string": CUT,
    "an unclosed string after a fence": f"{FENCE}python\n{CUT}",
    "prose": "Kernels are nice.\n",
    "nothing": "",
}


CUT_REASONS = ("length", "max_tokens", "MAX_TOKENS")


@pytest.mark.ci
def test_what_a_server_cut_off_is_truncated_through_both_doors_that_know_it(
    program: Program, tmp_path: Path, suite: Path
) -> None:
    bodies = [material.answer(text, reason) for reason in CUT_REASONS for text in CUT_BY_SERVER.values()]
    lines = tmp_path / "given.jsonl"
    lines.write_text("".join(json.dumps({"problem": "relu", "response": body}) + "\n" for body in bodies))
    program.run("verify", lines, "--suite", suite, *QUICK, code=1)
    answers: material.Answers = {("level1/1", number, 1): body for number, body in enumerate(bodies)}
    model = f"replay:{material.recording(tmp_path / 'cut.jsonl', answers)}"
    command = ("generate", "level1/1", "--suite", suite, "--model", model, *QUICK)
    program.run(*command, "--samples", len(bodies), code=None)
    assert stored(program) == [("truncated", None)] * 2 * len(bodies)
