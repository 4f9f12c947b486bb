"""Reading folders and lines of candidates: whose problem each is, and everything that is wrong at once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kernelproof.errors import UsageError
from kernelproof.problems import Suite, open_suite
from kernelproof.runs.candidates import CandidateInput, candidate_from_text, read_candidates, refuse_others
from kernelproof.types import Status
from tests.cli import material
from tests.providers.server import completion


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """level1/1 relu, level1/2 sines, level1/10 relu_wide, level1/relu_plain."""
    level = material.problems(tmp_path / "problems") / "level1"
    (level / "10_relu_wide.py").write_text(material.RELU)
    (level / "relu_plain.py").write_text(material.RELU)
    return open_suite(level.parent)


def put(path: Path, text: str = material.right()) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("level1/1_relu/a.py", "level1/1"),
        ("level1/1/deep/er/a.txt", "level1/1"),
        ("level1/relu/level1_2.md", "level1/1"),
        ("sines/a.py", "level1/2"),
        ("level1_1.py", "level1/1"),
        ("level1_1_sample3.py", "level1/1"),
        ("level1_10-a.py", "level1/10"),
        ("level_1_problem_10_sample_0_kernel.py", "level1/10"),
        ("LEVEL1_10.7.py", "level1/10"),
        ("models/of/mine/level1_2_b.py", "level1/2"),
        ("level1_relu_plain_4.py", "level1/relu_plain"),
    ],
)
def test_a_path_says_its_problem(tmp_path: Path, suite: Suite, path: str, problem: str) -> None:
    put(tmp_path / "given" / path)
    (found,) = read_candidates(tmp_path / "given", suite, None)
    assert (found.id, found.problem.id) == (path, problem)


def test_one_problem_for_all(tmp_path: Path, suite: Suite) -> None:
    folder = tmp_path / "given"
    for name in ("b.py", "a/level1_2.py", ".hidden/c.py", "d.json", ".e.py"):
        put(folder / name)
    os.mkfifo(folder / "f.py")  # to read from it would wait for whoever writes
    found = read_candidates(folder, suite, suite.find("relu_plain"))
    assert [(one.id, one.problem.id) for one in found] == [
        ("a/level1_2.py", "level1/relu_plain"),
        ("b.py", "level1/relu_plain"),
    ]


def test_every_file_that_cannot_be_used_is_named(tmp_path: Path, suite: Suite) -> None:
    folder = tmp_path / "given"
    put(folder / "level1_1_good.py")
    put(folder / "level1_11.py")
    put(folder / "elsewhere" / "a.py")
    put(folder / "level1_1_bytes.py").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError) as caught:
        read_candidates(folder, suite, None)
    first, *others = str(caught.value).split("\n  ")
    assert first == "3 candidates cannot be used (of 4 in all); nothing was run"
    assert [line.partition(": ")[0] for line in others] == [
        "elsewhere/a.py",
        "level1_11.py",
        "level1_1_bytes.py",
    ]
    assert "give --problem, or put it below level1/1_relu/" in others[0]
    assert "not a text file in UTF-8" in others[2]


def lines(path: Path, *found: object) -> Path:
    return put(path, "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in found))


def read(tmp_path: Path, suite: Suite, *found: object, problem: str | None = None) -> list[CandidateInput]:
    file = lines(tmp_path / "given.jsonl", *found)
    return read_candidates(file, suite, suite.find(problem) if problem else None)


def test_lines(tmp_path: Path, suite: Suite) -> None:
    recorded = {"problem": "level1/2", "backend": "cpp", "sample": 0, "turn": 1, "note": "a recording"}
    refusal = completion("no")
    refusal["choices"][0]["finish_reason"] = "content_filter"
    found = read(
        tmp_path,
        suite,
        {"problem": "relu", "source": material.right(), "id": "mine", "score": 1},
        "",
        {"problem": "level1/1", "response": material.fenced(material.right())},
        {**recorded, "response": completion(material.fenced(material.sines()))},
        {**recorded, "response": refusal, "id": 7},
    )
    assert [(one.id, one.problem.id) for one in found] == [
        ("mine", "level1/1"),
        ("given.jsonl:3", "level1/1"),
        ("given.jsonl:4", "level1/2"),
        ("7", "level1/2"),
    ]
    sources = [one.extraction.candidate.source if one.extraction.candidate else None for one in found]
    assert sources == [material.right(), material.right(), material.sines(), None]
    assert found[3].extraction.status is Status.FILTERED
    refuse_others(found, "cpp")
    with pytest.raises(UsageError, match=r"jsonl:4: recorded for cpp, and this would verify cuda\n  7: "):
        refuse_others(found, "cuda")


def test_a_problem_for_all_lines(tmp_path: Path, suite: Suite) -> None:
    found = read(tmp_path, suite, {"source": "x"}, {"problem": "sines", "source": "y"}, problem="level1/2")
    assert [one.problem.id for one in found] == ["level1/2", "level1/2"]


BAD = {
    "not json": ("{", "not JSON in UTF-8"),
    "deep": ("[" * 100_000, "not JSON in UTF-8"),
    "not an object": ("[1]", "the line must be a table of names and values, not a list"),
    "no problem": ({"source": "x"}, "problem: missing; give it here, or --problem"),
    "unknown problem": ({"problem": "rellu", "source": "x"}, "did you mean relu"),
    "number for a problem": ({"problem": 3, "source": "x"}, "problem must be text, not 3"),
    "no source": ({"problem": "relu"}, "give either source (a program) or response"),
    "both": ({"problem": "relu", "source": "x", "response": "y"}, "give either source (a program)"),
    "source of another type": ({"problem": "relu", "source": ["x"]}, "source must be text, not a list"),
    "response of another type": (
        {"problem": "relu", "response": 3},
        "response must be text or a table of names and values, not 3",
    ),
    "no backend": (
        {"problem": "relu", "source": "x", "backend": "hip"},
        "there is no such backend; there are",
    ),
    "a body without an answer": ({"problem": "relu", "response": {}}, "answer holds no message"),
    "a server's error": ({"problem": "relu", "response": {"error": "busy"}}, "answered with an error: busy"),
    "an id twice": ({"problem": "relu", "source": "x", "id": "first"}, "'first' is already on line 1"),
}


def test_every_line_that_is_wrong_is_named(tmp_path: Path, suite: Suite) -> None:
    good = {"problem": "relu", "source": "x", "id": "first"}
    with pytest.raises(UsageError) as caught:
        read(tmp_path, suite, good, *(line for line, _ in BAD.values()))
    first, *others = str(caught.value).split("\n  ")
    assert first == f"{len(BAD)} candidates cannot be used (of {len(BAD) + 1} in all); nothing was run"
    for number, (line, (_, message)) in enumerate(zip(others, BAD.values(), strict=True), start=2):
        assert line.startswith(f"line {number}: ") and message in line


def test_another_problem_than_that_for_all(tmp_path: Path, suite: Suite) -> None:
    with pytest.raises(UsageError, match="line 1: problem: 'relu' here, and --problem says level1/2"):
        read(tmp_path, suite, {"problem": "relu", "source": "x"}, problem="sines")


def test_nothing_there(tmp_path: Path, suite: Suite) -> None:
    with pytest.raises(UsageError, match="holds no candidates: no line"):
        read(tmp_path, suite, "", " ")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"holds no candidates: no \.py, \.txt, \.md below it"):
        read_candidates(tmp_path / "empty", suite, None)
    with pytest.raises(UsageError, match=r"gone\.jsonl cannot be read: No such file"):
        read_candidates(tmp_path / "gone.jsonl", suite, None)


@pytest.mark.parametrize(
    ("given", "stored"),
    [("/home/me/relu.py", "relu.py"), ("mine/relu.py", "mine/relu.py"), ("../relu.py", "../relu.py")],
)
def test_a_stored_candidate_keeps_its_files_name_without_the_folders_above(given: str, stored: str) -> None:
    problem = open_suite().find("relu")
    candidate = candidate_from_text(given, "class ModelNew: ...", problem)
    assert candidate.stored_response.raw == {"file": stored}
    assert candidate.stored_response.text == candidate.response.text and candidate.response.raw == {}
