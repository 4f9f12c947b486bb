"""An attempt comes out of a bundle as it went in."""

from __future__ import annotations

import math
from pathlib import Path

from kernelproof.db.store import open_store
from kernelproof.extraction import extract
from kernelproof.runs.bundles.reader import Bundle
from kernelproof.runs.bundles.writer import bundled, write_bundle
from kernelproof.types import ErrorStatistics, Response
from kernelproof.types.reproduction import Bundled
from tests.cli import material
from tests.db import samples
from tests.runs.bundles import forging

DIFF = """<<<<<<< SEARCH
        value = std::max(value, 0.0f);
=======
        value = std::max(0.0f, value);
>>>>>>> REPLACE
"""


def taken(attempt: Bundled, path: Path) -> Bundled:
    """The attempt as it is read from a bundle, which shows no tampering."""
    write_bundle([attempt], path)
    with Bundle(path) as bundle:
        assert bundle.tampering == () and bundle.numbers == [attempt.number]
        found = bundle.checked_attempt(attempt.number)
    assert found.tampering == () and found.attempt is not None
    return found.attempt


def test_everything_comes_out_again(tmp_path: Path) -> None:
    assert taken(forging.attempt(), tmp_path / "x") == forging.attempt()
    assert taken(forging.failed(), tmp_path / "x") == forging.failed()


def test_infinite_errors_and_lone_surrogates_come_out_again(tmp_path: Path) -> None:
    """Models write what is no Unicode, and wrong programs have infinite errors."""
    errors = ErrorStatistics(
        trial="drawn",
        output=0,
        dtype="float32",
        count=1,
        wrong=1,
        max_abs=math.inf,
        max_rel=math.inf,
        relative_norm=math.inf,
        reference_relative_norm=0.0,
    )
    answer = Response(text=material.right() + "# \udc80\n", raw={"said": "\udc80"})
    found, sound = extract(answer), forging.failed()
    assert found.candidate is not None
    verdict = {"errors": (errors,), "candidate_sha256": found.candidate.sha256}
    attempt = sound.model_copy(
        update={
            "response": answer,
            "extraction": found,
            "verification": sound.verification.model_copy(update=verdict),
        }
    )
    assert taken(attempt, tmp_path / "x") == attempt


def test_a_diff_is_bundled_with_the_program_that_it_changes(tmp_path: Path, empty_database: Path) -> None:
    problem, run, base = forging.problem(), samples.settings(verify=forging.SETTINGS), material.right()
    answer = Response(text=DIFF)
    found = extract(answer, base)
    assert found.method == "diff" and found.candidate is not None
    with open_store(tmp_path / "db" / "attempts.sqlite") as store:
        first = samples.begin(store, problem, run)
        store.record_response(first, Response(text=base))
        store.record_extraction(first, extract(Response(text=base)))
        store.begin_attempt(
            store.begin_run(run), samples.key(problem, turn=2), forging.attempt().prompt, first
        )
        store.record_response(2, answer)
        store.record_extraction(2, found)
        judged = samples.verification(problem, verify=forging.SETTINGS)
        judged = judged.model_copy(update={"candidate_sha256": found.candidate.sha256})
        store.record_verification(2, judged)
        attempt = bundled(store, 2)
    assert attempt.base == base
    assert taken(attempt, tmp_path / "x").base == base


def test_a_file_that_is_there_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.bundle"
    path.write_bytes(b"old")
    first = write_bundle([forging.attempt()], path)
    assert write_bundle([forging.attempt()], path) == first and first[1] == path.stat().st_size
    assert [file.name for file in tmp_path.iterdir()] == ["x.bundle"]
