"""`bundle`, and `reproduce` of what it wrote, in a workspace that has never seen the problem."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelproof.runs.bundles.reader import Bundle
from kernelproof.runs.bundles.writer import write_bundle
from kernelproof.types.reproduction import Bundled
from kernelproof.verifier.devices.discovery import gpus
from tests.cli import material
from tests.cli.conftest import working_in
from tests.cli.program import Program
from tests.db import samples
from tests.runs.bundles import forging


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory, cache: Path, measured: Path) -> Path:
    """The bundle of a correct, measured attempt."""
    path = tmp_path_factory.mktemp("bundles") / "sines.bundle"
    with working_in(measured, cache) as program:
        program.run("bundle", "1", "-o", path)
    return path


def claims(number: int = 17, **change: Any) -> Bundled:
    """A bundle's attempt that nobody has run; `change`: fields of its verification."""
    made = forging.attempt(number, **({"source": change.pop("source")} if "source" in change else {}))
    return made.model_copy(update={"verification": made.verification.model_copy(update=change)})


@pytest.mark.ci
def test_a_stranger_reproduces_a_number(program: Program, suite: Path, sound: Path) -> None:
    told = program.run("reproduce", sound, code=2)
    assert "problem level1/2 is not one of the packaged problems" in told.stderr
    assert "--trust-problems" in told.stderr and told.stdout == ""
    done = program.run("reproduce", sound, "--suite", suite, "--rigor", "quick", "--json", code=None)
    found = json.loads(done.stdout)
    (one,) = found["reproductions"]
    # On a machine that others use at this moment the time may differ; what is right stays right.
    assert one["finding"] in ("same", "faster", "slower", "ambiguous")
    assert done.returncode == (0 if one["finding"] in ("same", "faster") else 1)
    assert (one["then"]["status"], one["now"]["status"]) == ("correct", "correct")
    assert one["now"]["settings"]["rigor"] == "quick" and one["then"]["settings"]["rigor"] == "standard"
    assert one["differences"] == {} and one["verification_id"] is None and found["tampering"] == []
    with Bundle(sound) as bundle:
        assert found["bundle"] == bundle.sha256
    assert list(program.workspace.iterdir()) == []
    assert program.left_after() == {} and program.scratch() == []


@pytest.mark.ci
def test_the_bundle_in_a_report_reproduces(
    program: Program, suite: Path, measured: Path, cache: Path, tmp_path: Path
) -> None:
    page, saved = tmp_path / "report.html", tmp_path / "saved.bundle"
    with working_in(measured, cache) as there:
        there.run("report", "-o", page)
    (data,) = re.findall(r'href="data:application/zip;base64,([\w+/=]+)"', page.read_text())
    saved.write_bytes(base64.b64decode(data))
    done = program.run("reproduce", saved, "--suite", suite, "--rigor", "quick", "--json", code=None)
    (one,) = json.loads(done.stdout)["reproductions"]
    assert (one["then"]["status"], one["now"]["status"]) == ("correct", "correct")


@pytest.mark.ci
def test_a_forger_who_edits_everything_alike_is_found_by_the_run(
    program: Program, sound: Path, tmp_path: Path
) -> None:
    """The claim is that it is a hundred times as fast, in every figure: no hash and no sum shows that."""
    path = tmp_path / "forged.bundle"
    members = forging.unzipped(sound.read_bytes())
    path.write_bytes(
        forging.zipped(
            forging.mended(forging.edited(members, "attempts/1/measurement.json", a_hundred_times_as_fast))
        )
    )
    assert forging.told(path) == []
    done = program.run("reproduce", path, "--trust-problems", "--rigor", "quick", code=1)
    assert done.stdout.startswith("attempt 1: slower\n")


def a_hundred_times_as_fast(value: dict[str, Any]) -> None:
    value["speedup"] = 100.0
    value["speedup_interval"] = {"low": 99.0, "high": 101.0}
    value["candidate_ms"] = value["baseline_ms"] / 100
    value["candidate_samples_ms"] = [[ms / 100 for ms in block] for block in value["baseline_samples_ms"]]
    value["pace"], value["resolution"] = "faster", 0.01


@pytest.mark.ci
def test_a_wrong_candidate_that_is_claimed_to_be_right(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "wrong.bundle"
    write_bundle([claims(source=material.wrong())], path)
    done = program.run("reproduce", path, "--trust-problems", code=1)
    assert done.stdout.startswith("attempt 17: now wrong\ncorrect then, wrong_output now")
    assert "  cpu: Test CPU then" in done.stdout


def test_what_was_edited_is_named_and_not_run(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "forged.bundle"
    members = forging.members(forging.attempt())
    members["attempts/17/candidate.py"] += b"\nprint('ran')\n"
    path.write_bytes(forging.zipped(members))
    done = program.run("reproduce", path, "--trust-problems", code=1)
    first, second, *named = done.stdout.splitlines()
    assert (first, second) == (
        f"{path}: tampered",
        "the bundle is not what its manifest says; nothing was run",
    )
    assert len(named) == 1 and named[0].startswith("  tampered: attempts/17/candidate.py has ")
    found = json.loads(program.run("reproduce", path, "--trust-problems", "--json", code=1).stdout)
    assert found["reproductions"] == [] and len(found["tampering"]) == 1


def test_what_does_not_fit_together_is_named_and_not_run(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "forged.bundle"
    write_bundle([claims(candidate_sha256="0" * 64)], path)
    done = program.run("reproduce", path, code=1)
    assert done.stdout.startswith("attempt 17: tampered\nthe bundle does not fit together\n")
    assert "  tampered: attempt 17: the candidate's source is not the one that was judged" in done.stdout


def _backend(name: str) -> Callable[[], Bundled]:
    def made() -> Bundled:
        settings = forging.attempt().verification.settings.model_copy(update={"backend": name})
        return claims(settings=settings)

    return made


@pytest.mark.parametrize(
    "made, words",
    [
        pytest.param(
            _backend("cuda"),
            "the backend cuda needs a GPU, and this machine has none",
            marks=pytest.mark.skipif(bool(gpus()), reason="there is a GPU"),
        ),
        (_backend("metal"), "it was judged with the backend 'metal', and there are"),
    ],
)
def test_what_this_machine_cannot_run_is_not_comparable(
    made: Callable[[], Bundled], words: str, program: Program, tmp_path: Path
) -> None:
    path = tmp_path / "elsewhere.bundle"
    write_bundle([made()], path)
    done = program.run("reproduce", path, "--trust-problems", code=3)
    assert done.stdout.startswith(f"attempt 17: not comparable\n{words}")


def test_one_of_several_is_chosen(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "several.bundle"
    write_bundle([claims(18, candidate_sha256="0" * 64), claims(3, candidate_sha256="0" * 64)], path)
    listed = program.run("reproduce", path, "--list").stdout.splitlines()
    assert listed[0].startswith(f"{path}: 2 attempts, sha256 ")
    assert [line.split()[0] for line in listed[3:5]] == ["3", "18"] and "openai:m" in listed[3]
    done = program.run("reproduce", path, "--attempt", "18", code=1)
    assert done.stdout.startswith("attempt 18: tampered") and "attempt 3" not in done.stdout
    assert "has no attempt 4; it has 3, 18" in program.run("reproduce", path, "--attempt", 4, code=2).stderr


@pytest.mark.ci
def test_the_same_attempt_gives_the_same_bytes(
    program: Program, measured: Path, sound: Path, tmp_path: Path
) -> None:
    path = tmp_path / "again.bundle"
    done = program.run("bundle", "--workspace", measured, "--problem", "*sines", "-o", path)
    assert path.read_bytes() == sound.read_bytes()
    with Bundle(path) as bundle:
        assert done.stdout.startswith(f"{path}: 1 attempt, ") and bundle.sha256 in done.stdout
    assert [file.name for file in tmp_path.iterdir() if file.name.endswith(".bundle")] == ["again.bundle"]


def test_what_makes_no_bundle(
    program: Program, stored: Program, empty_database: Path, tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    with samples.new_store(tmp_path / "measured", empty_database) as store:
        samples.judge(store, samples.problem(), samples.settings(), speedup=2.0)

    def told(*words: object, code: int = 2) -> str:
        return program.run("bundle", *words, code=code).stderr

    assert "give one attempt, or filters" in told("-o", tmp_path / "x")
    assert "give one attempt, or filters" in told("1", "--level", "1", "-o", tmp_path / "x")
    assert "attempt 1 was never verified" in told("1", "-o", tmp_path / "x")
    assert "no measured result that passes these filters ranks" in told("--all-ranked", "-o", tmp_path / "x")
    kept = ("1", "--workspace", tmp_path / "measured")
    assert "is no file" in told(*kept, "-o", tmp_path / "there")
    assert "cannot be written: No such file" in told(*kept, "-o", tmp_path / "no" / "x", code=3)
    assert not (tmp_path / "x").exists()
