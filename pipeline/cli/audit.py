"""`kernelproof runs audit`: what leads the leaderboard, verified once more."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from kernelproof.choices import ROW, SEED
from kernelproof.cli.declaring import Option
from kernelproof.cli.options import AllRankedOption, FilterOptions, JsonOption, StorageOptions, UnsafeOption
from kernelproof.errors import MachineError, UsageError
from kernelproof.report.plain import finite, say
from kernelproof.wording import counted

if TYPE_CHECKING:
    from kernelproof.runs.reproduction import Leader, Outcome
    from kernelproof.types import Reproduction
    from kernelproof.verifier.engine.engine import Engine


def audit(
    *,
    all_ranked: AllRankedOption = False,
    sample: Annotated[int | None, Option("So many of these, drawn at random.", ROW)] = None,
    seed: Annotated[
        int | None, Option("Draw the sample that an audit with this seed drew [default: by chance].", SEED)
    ] = None,
    options: FilterOptions,
    storage: StorageOptions,
    as_json: JsonOption = False,
    unsafe: UnsafeOption = False,
) -> None:
    """Verify the leaders of the leaderboard again: all of them, or a sample.

    The findings are kept, and the leaderboard shows them. Exit code 1 where a result does not hold, 3 where
    all others hold and one cannot be compared on this machine.
    """
    from kernelproof.db.store import open_store
    from kernelproof.runs import reproduction as auditing
    from kernelproof.verifier.engine.engine import Engine

    seed = _seed(all_ranked, sample, seed)
    with open_store(storage.database, create=False) as store, Engine(unsafe=unsafe) as engine:
        chosen, elsewhere = _chosen(auditing.leaders(store, options.filters()), engine, sample, seed)
        _begin(chosen, elsewhere, seed, as_json)
        on_done = (lambda *_: None) if as_json else _print_result  # with --json all is printed at the end
        outcome = auditing.audit(store, chosen, engine, seed=seed, on_done=on_done)
    _print_json(outcome, seed, len(elsewhere)) if as_json else _say(outcome)
    if outcome.refuted:
        raise typer.Exit(1)
    if outcome.undecided:
        raise typer.Exit(3)


def _seed(all_ranked: bool, sample: int | None, seed: int | None) -> int | None:
    """The seed of a sample; None for an audit of all. Raises UsageError for options that do not fit."""
    import secrets

    if all_ranked is (sample is not None):
        raise UsageError("give --all-ranked, or --sample N to draw from what is ranked")
    if sample is None:
        if seed is not None:
            raise UsageError("--seed is for --sample; leave it out")
        return None
    return secrets.randbelow(int(SEED.most) + 1) if seed is None else seed


def _chosen(
    ranked: list[Leader], engine: Engine, sample: int | None, seed: int | None
) -> tuple[list[Leader], list[Leader]]:
    """The results that are audited, and those of devices that this machine has not.

    Raises MachineError where that is everything.
    """
    from kernelproof.runs.reproduction import by_place, drawn

    here, elsewhere = by_place(ranked, engine)
    if not here:
        devices = sorted({leader.setting.device or "no device" for leader in elsewhere})
        raise MachineError(
            f"what is ranked was measured on {', '.join(devices)}, and this machine has no such device; "
            "audit it there"
        )
    if sample is not None and seed is not None:
        here = drawn(here, sample, seed)
    return here, elsewhere


def _begin(chosen: list[Leader], elsewhere: list[Leader], seed: int | None, as_json: bool) -> None:
    by = "" if seed is None else f", drawn with --seed {seed}"
    say(f"auditing {counted(len(chosen), 'ranked result')}{by}", err=as_json)
    if elsewhere:
        left = counted(len(elsewhere), "result")
        say(f"{left} left out: measured on devices that this machine has not", err=as_json)


def _print_result(leader: Leader, result: Reproduction) -> None:
    finding = result.finding.value.replace("_", " ")
    say(f"  {leader.problem_id} #{leader.best.attempt_id}: {finding}: {result.reason}")
    for alteration in result.alterations:
        say(f"    tampered: {alteration}")


def _say(outcome: Outcome) -> None:
    more = [(outcome.refuted, "did not hold"), (outcome.undecided, "undecided")]
    rest = "".join(f", {number} {words}" for number, words in more if number)
    say(f"{outcome.held} of {counted(len(outcome.results), 'ranked result')} held{rest}")


def _print_json(outcome: Outcome, seed: int | None, elsewhere: int) -> None:
    results = [
        {
            "problem_id": leader.problem_id,
            "source": leader.source,
            "setting": leader.setting.model_dump(),
            "ranked_verification_id": leader.best.verification_id,
            **result.model_dump(mode="json"),
        }
        for leader, result in outcome.results
    ]
    value = {
        "seed": seed,
        "held": outcome.held,
        "refuted": outcome.refuted,
        "undecided": outcome.undecided,
        "elsewhere": elsewhere,
        "results": results,
    }
    print(json.dumps(finite(value), indent=2, allow_nan=False))
