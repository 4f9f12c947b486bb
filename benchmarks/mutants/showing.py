"""The table of mutants and twins, and every verdict that has to be explained."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from benchmarks.evidence import Record, table
from benchmarks.mutants.deciding import JUDGED, Decision
from benchmarks.mutants.recipes import MUTANT, TWIN
from kernelproof.types import Flag, Status

NOT_JUDGED = {
    Status.INFRASTRUCTURE_ERROR: "a fault of the machine or the problem",
    Status.OUT_OF_MEMORY: "does not fit the memory",
    Status.TIMEOUT: "takes too long",
    Status.CRASH: "crashes",
}


FLAGS = {Flag.STATE_NOT_UPDATED, Flag.PRECISION_NOT_SEPARABLE, Flag.WEIGHTS_SPECIALISED}
"""Those that speak of what a mutant may have changed."""


class Outcome(StrEnum):
    """What became of a candidate."""

    REFUSED = "refused"
    FLAGGED = "flagged"
    """Accepted, and flagged for statistics that it does not update, coarse operands, or other weights."""
    ACCEPTED = "accepted"
    ACCUSED = "accused"
    LEFT_OUT = "left out"
    NOT_REACHED = "not reached"
    EQUIVALENT = "equivalent"
    BELOW_ROUNDING = "below rounding"


def outcome(record: Record) -> Outcome:
    """The column in which a candidate counts."""
    decision, verdict = Decision(record["decision"]), record.get("verdict")
    if decision in (Decision.EQUIVALENT, Decision.BELOW_ROUNDING):
        return Outcome(decision.value)
    if decision not in JUDGED:
        return Outcome.LEFT_OUT
    if verdict is None:
        return Outcome.NOT_REACHED
    status = Status(verdict["status"])
    if status is Status.CHEATING:
        return Outcome.ACCUSED
    if status is Status.CORRECT:
        flagged = record["role"] == MUTANT and not FLAGS.isdisjoint(verdict["flags"])
        return Outcome.FLAGGED if flagged else Outcome.ACCEPTED
    raised = status in (Status.RUNTIME_ERROR, Status.LOAD_ERROR)
    return Outcome.LEFT_OUT if status in NOT_JUDGED or raised else Outcome.REFUSED


def reason(record: Record) -> str:
    """Why a candidate was left out."""
    if record["decision"] not in JUDGED:
        return str(record["decision"])
    status = Status(record["verdict"]["status"])
    if "nothing to change" in record["verdict"]["reason"]:
        return "nothing to change on this device"
    return NOT_JUDGED.get(status, "raises on this device")


def show(records: Sequence[Record]) -> bool:
    """Prints the table and all that has to be explained; whether no twin was refused or accused."""
    for role in (MUTANT, TWIN):
        mine = [record for record in records if record["role"] == role]
        print(f"\n{role}s\n{_table(role, mine)}")
        left = [reason(record) for record in mine if outcome(record) is Outcome.LEFT_OUT]
        for why in sorted(set(left)):
            print(f"  left out, {why}: {left.count(why)}")
    unusable = sorted({r["problem"] for r in records if not r["role"]})
    if unusable:
        print(f"\nproblems that do not run on a processor: {', '.join(unusable)}")
    unseen = [outcome(r) for r in records if r["decision"] == Decision.OWN_WEIGHTS]
    accepted = sum(end in (Outcome.ACCEPTED, Outcome.FLAGGED) for end in unseen)
    print(f"\nmutants that are {Decision.OWN_WEIGHTS}: {len(unseen)}, of which {accepted} were accepted")
    survivors = [r for r in records if r["role"] == MUTANT and outcome(r) is Outcome.ACCEPTED]
    wrong = [r for r in records if r["role"] == TWIN and outcome(r) in (Outcome.REFUSED, Outcome.ACCUSED)]
    accused = [r for r in records if r["role"] == MUTANT and outcome(r) is Outcome.ACCUSED]
    _listed("mutants that survived", survivors)
    _listed("mutants that were accused", accused)
    _listed("twins that were refused or accused", wrong)
    return not wrong


def _table(role: str, records: Sequence[Record]) -> str:
    columns = [each for each in Outcome if role == MUTANT or each not in _MUTANTS_ONLY]
    rows = list(dict.fromkeys(record["row"] for record in records))
    lines = []
    for row in (*rows, None):
        mine = [record for record in records if row in (None, record["row"])]
        ends = [outcome(record) for record in mine]
        lines.append((row or "all", len(mine), *(ends.count(column) for column in columns)))
    return table(("kind", "candidates", *columns), lines)


_MUTANTS_ONLY = (Outcome.FLAGGED, Outcome.EQUIVALENT, Outcome.BELOW_ROUNDING)


def _listed(title: str, records: Sequence[Record]) -> None:
    print(f"\n{title}: {len(records)}")
    for record in records:
        verdict, worst = record["verdict"], record["verdict"]["worst"]
        unseen = f" [{record['decision']}]" if record["decision"] == Decision.OWN_WEIGHTS else ""
        problem = f"{record['suite']} {record['problem']} {record['title']}"
        print(f"  {problem}: {record['row']} ({record['name']}){unseen}")
        print(f"    {verdict['status']}: {verdict['reason']}; in float64 {record['why']}")
        if worst is not None:
            allowed = worst["allowed_norm"]
            print(
                f"    worst trial {worst['trial']}: error {worst['relative_norm']:.3g} in norm,"
                f" allowed {'-' if allowed is None else format(allowed, '.3g')},"
                f" PyTorch's own {worst['reference_relative_norm']:.3g};"
                f" {worst['wrong']} of {worst['count']} wrong"
            )
