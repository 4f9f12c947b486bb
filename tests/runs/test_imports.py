"""Reading what is imported: KernelBench's names and results in all their spellings, folders, lines."""

from __future__ import annotations

import json
from pathlib import Path, PurePath
from typing import Any

import pytest

from kernelproof.errors import UsageError
from kernelproof.problems import Suite, open_suite
from kernelproof.runs.candidates import Place, place_of
from kernelproof.runs.imports import ImportInput, parse_results, read_import, read_times
from kernelproof.types.reproduction import ReportedResult
from tests.cli import material


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("runs/mine/level_1_problem_19_sample_3_kernel.py", Place(1, 19, 3)),
        ("mine/level1_problem19_sample_0_kernel.py", Place(1, 19, 0)),
        ("mine/level_2_problem_7_kernel.py", Place(2, 7, 0)),
        ("logs/generated_kernel_level_3_problem_50.py", Place(3, 50, 0)),
        ("baseline_eval/level1/llama-3.1-70b-inst/problem_100/sample_2/kernel.json", Place(1, 100, 2)),
        ("deepseek_level_2/problem_3_kernel.py", Place(2, 3, 0)),
        ("level_1/level_2_problem_3_sample_1_kernel.py", Place(2, 3, 1)),
        ("level1/1_relu/a.py", None),
        ("problem_3_kernel.py", None),
        ("multilevel_1_problem_3.py", None),
        ("level1_1_a.py", None),
    ],
)
def test_names(path: str, place: Place | None) -> None:
    assert place_of(PurePath(path)) == place


ENTRY = {"compiled": True, "correctness": True, "metadata": {}, "runtime": 0.72, "runtime_stats": {}}

SHAPES: dict[str, tuple[Any, set[tuple[int | None, int, int]]]] = {
    "samples in a list": (
        {"19": [{"sample_id": 0, **ENTRY}, {"sample_id": 2, **ENTRY}], "3": [{"sample_id": 0, **ENTRY}]},
        {(None, 19, 0), (None, 19, 2), (None, 3, 0)},
    ),
    "one sample": ({"19": {"sample_id": 1, **ENTRY}}, {(None, 19, 1)}),
    "no sample": ({"19": ENTRY}, {(None, 19, 0)}),
    "level, problem, sample": ({"1": {"19": {"0": ENTRY, "4": ENTRY}}}, {(1, 19, 0), (1, 19, 4)}),
    "level, problem, list": ({"level_2": {"19": [{"sample_id": 5, **ENTRY}]}}, {(2, 19, 5)}),
    "level, problem": ({"2": {"19": {"sample_id": 0, **ENTRY}}}, {(2, 19, 0)}),
    "problem, sample": ({"19": {"0": ENTRY, "1": ENTRY}}, {(None, 19, 0), (None, 19, 1)}),
    "the level in the metadata": ({"19": [{**ENTRY, "metadata": {"level": 3}}]}, {(3, 19, 0)}),
    "beside other things": ({"summary": {"correct": 3}, "19": ENTRY, "config": [1]}, {(None, 19, 0)}),
    "nothing yet": ({}, set()),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_of_results(name: str) -> None:
    value, expected = SHAPES[name]
    found, wrong = parse_results("eval_results.json", json.dumps(value).encode())
    assert wrong is None
    assert {claim[:3] for claim in found} == expected


BAD = {
    "no JSON": ("{", "is not JSON"),
    "deep": ("[" * 100_000, "is not JSON"),
    "a list": ("[]", "no entry by problem says"),
    "something else": ('{"runs": 3}', "no entry by problem says `correctness` or `runtime`"),
    "long number": ('{"1": ' + "1" * 5000 + "}", "is not JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_holds_no_results(name: str) -> None:
    text, message = BAD[name]
    found, wrong = parse_results("eval_results.json", text.encode())
    assert found == () and wrong is not None and message in wrong


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """level1/1 relu, level1/2 sines, level2/1 relu."""
    root = material.problems(tmp_path / "problems")
    (root / "level2").mkdir()
    (root / "level2" / "1_relu.py").write_text(material.RELU)
    return open_suite(root)


def put(path: Path, content: object = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text or material.right())
    return path


def claims(found: ImportInput) -> dict[str, tuple[object, ...]]:
    said = {}
    for one in found.candidates:
        assert one.reported is not None and one.reported.source == one.id
        said[one.id] = (one.problem.id, one.reported.correct, one.reported.runtime_ms, one.reported.speedup)
    return said


def test_a_run_with_its_results(tmp_path: Path, suite: Suite) -> None:
    run = tmp_path / "runs" / "mine"
    for name in ("level_1_problem_1_sample_0", "level_1_problem_1_sample_1", "level_1_problem_2_sample_0"):
        put(run / f"{name}_kernel.py")
        put(run / f"{name}_prompt.txt", "Write a kernel.")
        put(run / f"{name}_response.txt", material.fenced(material.wrong()))
    put(run / "level_1_problem_2_sample_7_response.txt", material.fenced(material.sines()))
    put(run / "notes.md", "What we did.")
    put(run / "generation_config.yaml", "level: 1")
    put(run / "eval_result_level_1_problem_1.txt", "compiled=True")
    hardware = {"hardware": "NVIDIA H100", "device": "cuda:0"}
    results = {
        "1": [
            {"sample_id": 0, **ENTRY, "metadata": hardware},
            {"sample_id": 1, "compiled": True, "correctness": False, "runtime": -1.0, "metadata": {}},
        ],
        "2": [{"sample_id": 0, **ENTRY, "runtime": 0.5, "ref_runtime": 1.5}, {"sample_id": 9, **ENTRY}],
    }
    put(run / "eval_results.json", results)

    found = read_import(run, suite, None)

    assert claims(found) == {
        "level_1_problem_1_sample_0_kernel.py": ("level1/1", True, 0.72, None),
        "level_1_problem_1_sample_1_kernel.py": ("level1/1", False, None, None),
        "level_1_problem_2_sample_0_kernel.py": ("level1/2", True, 0.5, 3.0),
        "level_1_problem_2_sample_7_response.txt": ("level1/2", None, None, None),
    }
    assert found.notes == (
        "1 text left out, without a problem in its name: notes.md",
        "1 result in eval_results.json without its program here: problem 2 sample 9",
    )
    first = found.candidates[0].reported
    assert first is not None
    assert (first.said_in, first.device) == ("eval_results.json", "NVIDIA H100")
    assert first.raw == results["1"][0]
    last = found.candidates[-1]
    assert last.extraction.candidate is not None
    assert last.extraction.candidate.source == material.sines()


def test_times_of_the_reference_from_another_file(tmp_path: Path, suite: Suite) -> None:
    run = tmp_path / "mine"
    put(run / "level_1_problem_1_sample_0_kernel.py")
    put(run / "level_1_problem_2_sample_0_kernel.py")
    put(run / "eval_results.json", {"1": ENTRY, "2": {**ENTRY, "correctness": False}})
    stats = {"mean": 1.44, "std": 0.1, "num_trials": 100}
    timing = put(tmp_path / "times.json", {"level1": {"1_relu.py": stats, "2_sines.py": stats, "x.py": 3}})
    times = read_times(timing)
    assert times == {"level1/1": 1.44, "level1/2": 1.44}
    said = claims(read_import(run, suite, None, times))
    assert said["level_1_problem_1_sample_0_kernel.py"] == ("level1/1", True, 0.72, 2.0)
    assert said["level_1_problem_2_sample_0_kernel.py"][3] is None  # wrong: no speedup is claimed
    with pytest.raises(UsageError, match="holds no times"):
        read_times(put(tmp_path / "other.json", {"level1": 3}))


def test_answers_in_a_folder_beside_their_programs(tmp_path: Path, suite: Suite) -> None:
    run = tmp_path / "mine"
    row = {"problem_name": "1_relu.py", "status": "evaluated", "eval_result": {**ENTRY, "runtime": -1.0}}
    rows = [{"level": 1, "problem_id": 1, **row}, {"level": 2, "problem_id": 1, **row}]
    rows += [{"level": 1, "problem_id": 2, "status": "static_failed"}]
    for level, problem in ((1, 1), (1, 2), (2, 1)):
        put(run / "generated_kernels" / f"level_{level}" / f"problem_{problem}.py")
        put(run / "raw_generation" / f"level_{level}" / f"problem_{problem}.txt", material.fenced("x = 1"))
    put(run / "raw_generation" / "level_1" / "problem_9.txt", "and-and-and-and")
    put(run / "per_problem" / "level_1" / "problem_1.json", rows[0])
    put(run / "results.jsonl", "".join(json.dumps(one) + "\n" for one in rows))

    found = read_import(run, suite, None)

    assert claims(found) == {
        "generated_kernels/level_1/problem_1.py": ("level1/1", True, None, None),
        "generated_kernels/level_1/problem_2.py": ("level1/2", None, None, None),
        "generated_kernels/level_2/problem_1.py": ("level2/1", True, None, None),
    }
    assert found.notes == (
        "1 answer left out, of which no program was taken there; to read them, import their folder alone: "
        "raw_generation/level_1/problem_9.txt",
        "1 row in results.jsonl without a result: problem 2 sample 0",
    )
    answers = read_import(run / "raw_generation" / "level_2", suite, None)
    assert [one.id for one in answers.candidates] == ["problem_1.txt"]


@pytest.mark.parametrize("folder", ["raw", "responses", "model_answers"])
def test_answers_of_another_model_are_no_answers_of_a_program(
    tmp_path: Path, suite: Suite, folder: str
) -> None:
    run = tmp_path / "mine"
    put(run / "kernels" / "a" / "level_1_problem_1_sample_0_kernel.py")
    put(run / folder / "a" / "level_1_problem_1_sample_0_response.txt")
    put(run / folder / "b" / "level_1_problem_1_sample_0_response.txt")
    assert [one.id for one in read_import(run, suite, None).candidates] == [
        "kernels/a/level_1_problem_1_sample_0_kernel.py",
        f"{folder}/b/level_1_problem_1_sample_0_response.txt",
    ]


def test_detailed_results_name_their_level_once(tmp_path: Path, suite: Suite) -> None:
    run = tmp_path / "opus_level2_2025"
    put(run / "problem_1_kernel.py")
    rows = [{"problem_id": 1, "success": True, "eval_result": ENTRY}, {"problem_id": 7, "success": False}]
    put(run / "detailed_results.json", {"run_info": {"level": 2}, "results": rows, "summary": {"n": 2}})
    found = read_import(run, suite, None)
    assert claims(found) == {"problem_1_kernel.py": ("level2/1", True, 0.72, None)}
    assert found.notes == ("1 row in detailed_results.json without a result: problem 7 sample 0",)


WHOLE = json.dumps({"1": [{"sample_id": 0, **ENTRY}], "2": [{"sample_id": 0, **ENTRY}]}, indent=4)
"""Where it is cut off, and how many results can be read."""
CUTS = {
    "in the second entry": (WHOLE[: WHOLE.rindex('"metadata"')], 1),
    "after the second entry": (WHOLE[: WHOLE.rindex("}", 0, -1) + 1], 2),
    "in the first entry": (WHOLE[:60], 0),
    "at once": ("{", 0),
    "a conflict": (WHOLE.replace('"2"', '<<<<<<< HEAD\n"2"'), 1),
    "nothing": ("", 0),
    "a page": ("<html>Not found</html>", 0),
}


@pytest.mark.parametrize("name", CUTS)
def test_results_that_are_cut_off(tmp_path: Path, suite: Suite, name: str) -> None:
    text, count = CUTS[name]
    for problem in (1, 2):
        put(tmp_path / "mine" / f"level_1_problem_{problem}_sample_0_kernel.py")
    (tmp_path / "mine" / "eval_results.json").write_text(text)
    found = read_import(tmp_path / "mine", suite, None)
    assert sum(one.reported.has_claim for one in found.candidates if one.reported) == count
    (note,) = found.notes
    assert note.startswith("eval_results.json is not JSON, or was cut off (")
    assert f"): {count} result{'s' if count != 1 else ''} in it could be read; get it whole and run" in note


def test_a_line_of_results_that_is_cut_off(tmp_path: Path, suite: Suite) -> None:
    put(tmp_path / "mine" / "level_1_problem_1_sample_0_kernel.py")
    row = json.dumps({"level": 1, "problem_id": 1, "eval_result": ENTRY})
    for text in (f"{row}\n{row[:70]}", f"{row}{row}"):  # the second lacks an end of line
        put(tmp_path / "mine" / "results.jsonl", text)
        found = read_import(tmp_path / "mine", suite, None)
        assert claims(found) == {"level_1_problem_1_sample_0_kernel.py": ("level1/1", True, 0.72, None)}
        assert "results.jsonl is not JSON, or was cut off (" in found.notes[0]
        assert "1 result in it could be read" in found.notes[0]


def test_levels_in_one_folder(tmp_path: Path, suite: Suite) -> None:
    run = tmp_path / "mine"
    for level in (1, 2):
        put(run / f"level_{level}_problem_1_sample_0_kernel.py")
    put(run / "eval_results.json", {"1": ENTRY})
    found = read_import(run, suite, None)
    assert [one.reported.has_claim for one in found.candidates if one.reported] == [False, False]
    assert found.notes == (
        "1 result in eval_results.json without a level, of which there are several here: problem 1 sample 0",
    )
    put(run / "eval_results.json", {"2": {"1": {"0": ENTRY}}})
    found = read_import(run, suite, None)
    assert [one.reported.has_claim for one in found.candidates if one.reported] == [False, True]
    assert found.notes == ()


def test_each_run_has_the_results_beside_it(tmp_path: Path, suite: Suite) -> None:
    for run, runtime in (("a", 1.0), ("b", 2.0)):
        put(tmp_path / "runs" / run / "level_1_problem_1_sample_0_kernel.py")
        put(tmp_path / "runs" / run / "eval_results.json", {"1": [{**ENTRY, "runtime": runtime}]})
    said = claims(read_import(tmp_path / "runs", suite, None))
    assert {name: claim[2] for name, claim in said.items()} == {
        "a/level_1_problem_1_sample_0_kernel.py": 1.0,
        "b/level_1_problem_1_sample_0_kernel.py": 2.0,
    }


def test_published_samples(tmp_path: Path, suite: Suite) -> None:
    root = tmp_path / "baseline_eval"
    sample = {"kernel": material.right(), "eval_result": {"eval_0": {"compiled": True, "correct": True}}}
    put(root / "level1" / "some-model" / "problem_1" / "sample_0" / "kernel.json", sample)
    put(root / "level2" / "some-model" / "problem_1" / "sample_0" / "kernel.json", {"kernel": "no program"})
    assert claims(read_import(root, suite, None)) == {
        "level1/some-model/problem_1/sample_0/kernel.json": ("level1/1", True, None, None),
        "level2/some-model/problem_1/sample_0/kernel.json": ("level2/1", None, None, None),
    }
    put(root / "level1" / "some-model" / "problem_2" / "sample_0" / "kernel.json", "[]")
    with pytest.raises(UsageError, match=r"problem_2/sample_0/kernel\.json: no program in it: `kernel`"):
        read_import(root, suite, None)


def test_lines_with_claims(tmp_path: Path, suite: Suite) -> None:
    given = [
        {"problem": "relu", "source": material.right(), "id": "mine", "claimed": {"speedup": 2.5}},
        {
            "problem": "level1/2",
            "response": material.fenced(material.sines()),
            "claimed": {"correct": True, "runtime_ms": 0.5, "baseline_ms": 1.0, "device": "NVIDIA A100"},
        },
        {"problem": "level1/1", "response": "I cannot."},
    ]
    file = tmp_path / "given.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in given))
    assert open_suite(None).name == "kernelproof"
    found = read_import(file, open_suite(tmp_path / "problems" / "level1"), None)
    assert claims(found) == {
        "mine": ("level1/1", None, None, 2.5),
        "given.jsonl:2": ("level1/2", True, 0.5, 2.0),
        "given.jsonl:3": ("level1/1", None, None, None),
    }
    second = found.candidates[1].reported
    assert second is not None and (second.said_in, second.device) == ("given.jsonl", "NVIDIA A100")
    file.write_text(json.dumps({"problem": "relu", "source": "x", "claimed": {"speedup": -1}}))
    with pytest.raises(UsageError, match=r"line 1: claimed\.speedup must be more than 0, not -1"):
        read_import(file, open_suite(tmp_path / "problems" / "level1"), None)


def test_mistakes(tmp_path: Path, suite: Suite) -> None:
    run = tmp_path / "mine"
    put(run / "level_1_problem_1_sample_0_kernel.py")
    with pytest.raises(UsageError, match=r"the packaged problems have other numbers; give --suite"):
        read_import(run, open_suite(None), None)
    put(run / "level_1_problem_77_sample_0_kernel.py")
    put(run / "helper.py")
    with pytest.raises(UsageError) as caught:
        read_import(run, suite, None)
    first, *others = str(caught.value).split("\n  ")
    assert first == "2 candidates cannot be used (of 3 in all); nothing was run"
    assert "helper.py: no problem in this path; give --problem" in others[0]
    assert "level_1_problem_77_sample_0_kernel.py: no problem 'level1/77'" in others[1]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"empty holds no programs: no \.py, \.txt, \.md and no kernel.json"):
        read_import(tmp_path / "empty", suite, None)


HUGE = {"correct": True, "runtime_ms": 1e-300, "baseline_ms": 1e300}
SAID = {"correct": True, "speedup": 3.0, "runtime_ms": 1.0, "baseline_ms": 2.0}
ODD: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"runtime": True}, {}),
    ({"runtime": "0.7"}, {}),
    ({"runtime": 0, "runtime_stats": {"mean": 0.5}}, {"runtime_ms": 0.5}),
    ({"runtime": float("inf")}, {}),
    ({"runtime": float("nan"), "runtime_stats": []}, {}),
    ({"correctness": True, "runtime": 1e-300, "ref_runtime": 1e300}, HUGE),
    ({"correctness": True, "runtime": 1.0, "ref_runtime": 2.0, "speedup": 3}, SAID),
    ({"correctness": "yes", "compiled": 1}, {}),
    ({"compiled": True, "runtime_stats": {"hardware": "x" * 5000}}, {"compiled": True, "device": "x" * 200}),
]


@pytest.mark.parametrize(("entry", "expected"), ODD)
def test_odd_values_are_no_claims(
    tmp_path: Path, suite: Suite, entry: dict[str, Any], expected: dict[str, Any]
) -> None:
    put(tmp_path / "mine" / "level_1_problem_1_sample_0_kernel.py")
    put(tmp_path / "mine" / "eval_results.json", {"1": entry})
    (one,) = read_import(tmp_path / "mine", suite, None).candidates
    assert one.reported is not None
    facts = one.reported.model_dump(exclude={"raw", "source", "said_in"}, exclude_none=True)
    assert facts == expected
    assert one.reported == ReportedResult.model_validate_json(one.reported.model_dump_json())
