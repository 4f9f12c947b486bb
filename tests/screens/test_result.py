"""`verify` of one file, `show`, and the closing lines of `tune`: the first screen says the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelproof.cli import verify as compared
from kernelproof.cli.tune import _closing_line, _next
from kernelproof.db.store import Store
from kernelproof.jobs import Verdict
from kernelproof.report.plain import screen
from kernelproof.report.show import print_attempt
from kernelproof.report.verification import print_next, print_verified
from kernelproof.runs.tuning import Trial, Tuned, TuningTask
from kernelproof.runs.tuning_template import read_template
from kernelproof.types import (
    Build,
    BuildState,
    Check,
    CheckOutcome,
    Flag,
    Interval,
    Measurement,
    Pace,
    Status,
    Verification,
)
from tests.db import samples
from tests.screens import WIDTHS, assert_screen

LOG = """[1/2] compile main.o
main.cpp:14:22: error: 'load' is not a member of 'Vec'
   14 |         Vec v = Vec::load(px + i);
      |                      ^~~~
ninja: build stopped: subcommand failed.
"""
PASSED = [
    Check(
        name=name,
        outcome=CheckOutcome.PASS,
        asked="Do the outputs agree with the reference within the tolerance?",
        seen="relative error 4.9e-06 in norm (the reference's own 4.14e-07; allowed 5e-05)",
    )
    for name in ("values: drawn", "values: drawn 2", "values: signed", "values: large")
]


def measured(speedup: float, low: float, high: float, pace: Pace, **more: Any) -> Measurement:
    """A measurement against 0.72 ms of the baseline."""
    fields = {
        "speedup": speedup,
        "speedup_interval": Interval(low=low, high=high),
        "pace": pace,
        "baseline_ms": 0.72,
        "candidate_ms": 0.72 / speedup,
        "inside_ms": 0.72 / speedup,
        "order": ("BC", "CB") * 12,
    }
    return samples.measurement(speedup).model_copy(update=fields | more)


def failed(name: str, seen: str) -> tuple[Check, ...]:
    """The checks of a candidate that failed this one."""
    asked = "Do the outputs agree with the reference within the tolerance?"
    return (
        *PASSED,
        Check(name=name, outcome=CheckOutcome.FAIL, asked=asked, seen=seen, figures={"wrong": 3}),
    )


def verdict(status: Status, reason: str, **fields: Any) -> Verification:
    plain = samples.verification(samples.problem(), status)
    return plain.model_copy(update={"reason": reason, "checks": tuple(PASSED), **fields})


WRONG = (
    "output 0: 12 of 64 elements wrong, first at [0, 6]: expected -0.109407669, got -0.109637909, where an "
    "error of 0.000196 is allowed and PyTorch's own is 3.13e-08"
)
HIDDEN = "inside 0.2129 ms, outside 1.731 ms a call: 1.22 ms a call are certainly not on its own clock"
RESULTS: dict[str, Verification] = {
    "faster": verdict(
        Status.CORRECT,
        "every check passed",
        flags=(Flag.SHAPE_SPECIALISED,),
        measurement=measured(1.234, 1.182, 1.331, Pace.FASTER),
    ),
    "bounded": verdict(
        Status.CORRECT,
        "every check passed",
        measurement=measured(
            9.68, 9.68, 10.89, Pace.FASTER, inside_ms=0.066, disturbed=("other programs took a core",) * 12
        ),
    ),
    "slower": verdict(
        Status.CORRECT, "every check passed", measurement=measured(0.0712, 0.0688, 0.0951, Pace.SLOWER)
    ),
    "unresolved": verdict(
        Status.CORRECT,
        "every check passed",
        measurement=measured(
            5.725,
            1.617,
            20.27,
            Pace.UNRESOLVED,
            unresolved_because="half of its interval is 126 % wide, 15 % is allowed",
        ),
    ),
    "wrong": verdict(
        Status.WRONG_OUTPUT, f"values: constant: {WRONG}", checks=failed("values: constant", WRONG)
    ),
    "build_error": verdict(
        Status.BUILD_ERROR,
        "your extension did not compile: main.cpp:14:22: error: 'load' is not a member of 'Vec'",
        checks=(),
        builds=(Build(key="k", state=BuildState.ERROR, name="ext", log=LOG),),
        details=LOG,
    ),
    "cheating": verdict(
        Status.CHEATING, f"host_clock: {HIDDEN}", checks=failed("host_clock", HIDDEN), measurement=None
    ),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", RESULTS)
def test_a_verified_file(name: str, width: int | None) -> None:
    found = RESULTS[name]
    printed = assert_screen(
        f"verify_{name}",
        lambda: print_verified(samples.extraction(), found.status, found, 3, screen()),
        width,
    )
    assert printed.startswith(str(found.status)) and "kernelproof show 3" in printed
    if width:
        assert max(map(len, printed.splitlines())) <= width


@pytest.fixture(scope="module")
def attempts(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with an attempt for each result, in their order."""
    with samples.new_store(tmp_path_factory.mktemp("results"), empty_database) as store:
        for number, found in enumerate(RESULTS.values()):
            attempt = samples.begin(store, samples.problem(), samples.settings(), sample=number)
            store.record_response(attempt, samples.response())
            store.record_extraction(attempt, samples.extraction())
            store.record_verification(attempt, found)
            store.finish_attempt(attempt, found.status)
        yield store


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["faster", "unresolved", "wrong"])
def test_a_stored_attempt(attempts: Store, name: str, width: int | None) -> None:
    stored = attempts.load_attempt(1 + list(RESULTS).index(name))
    printed = assert_screen(f"show_{name}", lambda: print_attempt(stored, screen()), width)
    assert printed.splitlines()[0].startswith(str(RESULTS[name].status))


TILED = "# tune: TILE = 4 | 8 | 16\nTILE = 4\n\n\nclass ModelNew: ...\n"


def tuned(before: Measurement, after: Measurement | None) -> Tuned:
    """A tuning whose confirmations came out so."""
    settings = samples.CPP_SMALL
    task = TuningTask(read_template(TILED), samples.problem(), settings, settings)

    def trial(values: tuple[int, ...], of: Measurement, number: int) -> Trial:
        return Trial(values, Status.CORRECT, "", of, number, kept=False)

    best = None if after is None else trial((16,), after, 5)
    return Tuned(task, [trial((4,), before, 1)], original=trial((4,), before, 4), best=best)


SAME = measured(1.0, 0.99, 1.01, Pace.SAME)
TUNINGS: dict[str, Callable[[], Tuned]] = {
    "gain": lambda: tuned(SAME, measured(1.42, 1.31, 1.54, Pace.FASTER)),
    "noise": lambda: tuned(
        SAME.model_copy(update={"resolution": 2.01}), measured(5.725, 1.617, 20.27, Pace.UNRESOLVED)
    ),
    "interval": lambda: tuned(SAME, measured(1.03, 0.97, 1.1, Pace.UNRESOLVED)),
    "loss": lambda: tuned(SAME, measured(0.9, 0.89, 0.91, Pace.SLOWER)),
    "none": lambda: tuned(SAME, None),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", TUNINGS)
def test_how_a_tuning_closes(name: str, width: int | None) -> None:
    done = TUNINGS[name]()

    def close() -> None:
        console = screen()
        console.print(_closing_line(done), markup=False, soft_wrap=not console.is_terminal)
        print_next(_next(done, ""), console)

    printed = " ".join(assert_screen(f"tune_{name}", close, width).split())
    assert ("the original is kept" in printed) == (name != "gain")


COMPARISONS = {
    "faster": measured(1.42, 1.31, 1.54, Pace.FASTER),
    "slower": measured(0.71, 0.69, 0.73, Pace.SLOWER),
    "unclear": measured(1.03, 0.97, 1.1, Pace.UNRESOLVED),
    "wrong": None,
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", COMPARISONS)
def test_how_two_files_compare(name: str, width: int | None) -> None:
    """The first line of each is its headline, then how many times as fast the new one is, and what next."""
    files = ("yesterday.py", "today.py")
    new = COMPARISONS[name]
    found = [
        verdict(Status.CORRECT, "every check passed", measurement=SAME),
        verdict(Status.CORRECT, "every check passed", measurement=new) if new else RESULTS["wrong"],
    ]
    done = [Verdict(samples.extraction(), v.status, v, attempt_id=n) for n, v in enumerate(found, 1)]

    def compare() -> None:
        console = screen()
        for file, each in zip(files, done, strict=True):
            compared._say_one(file, each, console)
        compared._say_end(files, done, *compared._gains(*done), console)

    printed = " ".join(assert_screen(f"compare_{name}", compare, width).split())
    assert ("surely slower" in printed) == (name == "slower")
