"""Judges every member of the corpus and prints the confusion table: kind of candidate against status.

    .venv/bin/python scripts/confusion.py --device cuda --json table.json
    CUDA_VISIBLE_DEVICES=1 .venv/bin/python scripts/confusion.py --device cuda --share 1/4 --json part1.json
    .venv/bin/python scripts/confusion.py --add part0.json part1.json part2.json part3.json

With --json each record is written as it comes. Members that the file already holds are not judged again, but
counted: so a run that was stopped goes on (--fresh forgets it; do that when the verifier has changed). A
member whose file has changed since is judged again. --add judges nobody: it adds up files of --json from any
runs and machines, and --json then keeps them all in one.

Exit code 1 when a cheat, a wrong or a faulty candidate is accepted, an honest one refused, or any member ends
otherwise than its header says; with --add also when a member is missing. Exit code 2 for parts that do not
fit together: several verifiers or policies (unless --mixed), several devices (unless --device says which).
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # the corpus is read by the tests' own code

from kernelproof.errors import KernelproofError, SandboxError
from kernelproof.types import Verification
from kernelproof.verifier.sandbox import Group, probe
from kernelproof.workspace import cache_directory
from tests.referee.corpus import DEVICES, KINDS, Confusion, Member, build_ahead, failed_check, members, miss
from tests.referee.court import Court
from tests.referee.parts import PartsError, add, code, read_part, the_device, wording

FIGURES = {
    "speedup",
    "inside_ms",
    "host_ms",
    "unseen_ms",
    "candidate_ms",
    "baseline_ms",
    "overhead_ms",
    "calls",
}
"""Of a measurement."""


def main() -> int:
    """Judges the chosen members in turn and prints what came of them."""
    arguments = parse()
    if arguments.add:
        return added(arguments)
    probe()  # without a sandbox nobody is judged
    chosen, cache = choose(arguments, arguments.device or "cpu"), cache_directory()
    records = [] if arguments.fresh or not arguments.json else earlier(arguments.json, chosen)
    known = {f"{record['kind']}/{record['name']}" for record in records}
    left = [member for member in chosen if member.id not in known]
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kernelproof-confusion-") as directory:
        scratch = Path(directory)
        scratch.chmod(0o755)
        with Court(cache, scratch) as court, ThreadPoolExecutor(1) as pool:
            jobs = Group(court.others, in_turn=True)
            building = pool.submit(build_ahead, left, cache, jobs, threads=arguments.builders)
            if not court.others:  # timed processes have no cores of their own
                building.result()
            left.sort(key=lambda member: member.builds)  # members without a build wait for none
            for number, member in enumerate(left, 1 + len(chosen) - len(left)):
                if arguments.seconds_budget and time.monotonic() - began > arguments.seconds_budget:
                    print(f"{len(chosen) - number + 1} left: --seconds-budget is used up")
                    jobs.close()
                    break
                records.append(judge(court, member))
                show(f"{number:4}/{len(chosen)}", records[-1])
                if arguments.json:
                    arguments.json.write_text(json.dumps(records, indent=1) + "\n")
            else:
                building.result()
    return 0 if told(records, {member.id: member for member in chosen}) else 1


def added(arguments: argparse.Namespace) -> int:
    """Adds up files of earlier runs and prints what they come to. Raises PartsError."""
    records = [record for path in arguments.add for record in read_part(path)]
    device = the_device(records, arguments.device)
    chosen = {member.id: member for member in choose(arguments, device)}
    there = {member.id for member in members(device)}
    total = add(records, chosen, device, there=there, mixed=arguments.mixed)
    print("\n".join(total.lines()))
    if arguments.json:
        arguments.json.write_text(json.dumps(records, indent=1) + "\n")
    return 0 if total.faultless else 1


def earlier(path: Path, chosen: list[Member]) -> list[dict[str, Any]]:
    """The records of a run that is to go on, less those of members of another wording. Raises PartsError."""
    now = {member.id: wording(member) for member in chosen}
    records = read_part(path) if path.exists() else []
    return [r for r in records if now.get(f"{r['kind']}/{r['name']}", r["candidate"]) == r["candidate"]]


def show(place: str, record: dict[str, Any]) -> None:
    """A line for each member, and why it is a miss."""
    mark, name = "MISS" if record["miss"] else "ok", f"{record['kind']}/{record['name']}"
    says = f"{record['status']} {record['failed_check'] or ''}".rstrip()
    print(f"{place} {mark:4} {record['seconds']:6.1f} s  {name}: {says}", flush=True)
    if record["miss"]:
        print(f"{'':24}{record['miss']}", flush=True)


def told(records: list[dict[str, Any]], chosen: dict[str, Member]) -> bool:
    """Prints the table of the chosen members' records, and says whether each is as its header says."""
    confusion = Confusion()
    for record in records:
        member = chosen.get(f"{record['kind']}/{record['name']}")
        if member is not None:
            confusion.note(member, record["status"], record["miss"])
    print()
    print("\n".join(confusion.lines()))
    tiers = {record["tier"] for record in records if record.get("tier")}
    print(f"in sandboxes of tier: {', '.join(sorted(tiers)) or 'none'}")
    for name, why in confusion.misses:
        print(f"  {name}: {why}")
    return not (confusion.misses or confusion.accepted or confusion.refused)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--device", choices=DEVICES, help="cpu if nothing is said; with --add, the parts' own"
    )
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this kind; may be repeated")
    parser.add_argument(
        "--only",
        metavar="PATTERN",
        action="append",
        help="only members like cheats/cached_*; may be repeated",
    )
    parser.add_argument(
        "--share", metavar="I/N", type=share, default=(0, 1), help="every N-th, from the I-th (0..N-1) on"
    )
    parser.add_argument(
        "--builders", type=int, default=max(1, len(os.sched_getaffinity(0)) // 2), help="builds at a time"
    )
    parser.add_argument(
        "--json", metavar="FILE", type=Path, help="one record for each member; goes on with it"
    )
    parser.add_argument("--fresh", action="store_true", help="forget what --json holds")
    parser.add_argument("--seconds-budget", type=float, metavar="S", help="begin no member after so long")
    parser.add_argument(
        "--add",
        metavar="FILE",
        type=Path,
        nargs="+",
        help="judge nobody; add up what --json wrote in earlier runs",
    )
    parser.add_argument("--mixed", action="store_true", help="add verdicts of several verifiers or policies")
    return parser.parse_args()


def share(text: str) -> tuple[int, int]:
    """`1/4` as (1, 4). Raises ArgumentTypeError for what is no share."""
    try:
        index, count = (int(part) for part in text.split("/"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form I/N") from None
    if not 0 <= index < count:
        raise argparse.ArgumentTypeError(f"{text!r}: I runs from 0 to N - 1")
    return index, count


def choose(arguments: argparse.Namespace, device: str) -> list[Member]:
    """The members that the command line asks for."""
    index, count = arguments.share
    found = [
        member
        for member in members(device)
        if (not arguments.kind or member.kind in arguments.kind)
        and (not arguments.only or any(fnmatch.fnmatch(member.id, only) for only in arguments.only))
    ]
    return found[index::count]


def judge(court: Court, member: Member) -> dict[str, Any]:
    """One verdict as a record; a lost referee or an unfit device is a miss of its own."""
    began, before = time.monotonic(), court.left_over()
    record: dict[str, Any] = {"kind": member.kind, "name": member.name, "device": member.device}
    record |= {"expected": list(member.expected), "caught_by": list(member.caught_by)}
    record["candidate"] = wording(member)
    # A process that a fault leaves behind looks like a process in reserve: faults are judged without a
    # reserve.
    ahead = member.device == "cuda" and member.kind != "faults"
    try:
        verdict = court.judge(member.request, ahead=ahead)
    except KernelproofError as error:
        found: dict[str, Any] = {"status": "lost", "failed_check": None, "miss": f"no verdict: {error}"}
        found |= {"verifier": None, "place": None}
    else:
        found = described(verdict) | {"miss": miss(member, verdict)}
    found["left_over"] = [] if ahead else [item for item in court.left_over() if item not in before]
    if found["left_over"] and not found["miss"]:
        found["miss"] = f"left over: {', '.join(found['left_over'])}"
    return record | found | {"seconds": round(time.monotonic() - began, 2)}


def described(verdict: Verification) -> dict[str, Any]:
    """What of a verdict the record keeps."""
    measured = verdict.measurement
    return {
        "status": verdict.status.value,
        "failed_check": failed_check(verdict),
        "reason": verdict.reason,
        "details": verdict.details[-2000:],
        "measured": measured.model_dump(mode="json", include=FIGURES) if measured else None,
        "stage_seconds": verdict.stage_seconds,
        "verifier": f"{verdict.verifier} code:{code()[:12]}",
        "place": place(verdict),
        "tier": verdict.sandbox.tier if verdict.sandbox else None,
    }


def place(verdict: Verification) -> str | None:
    """The GPU or the processor that a verdict comes from."""
    where = verdict.environment
    if where is None:
        return None
    return where.gpu.name if where.gpu else where.cpu


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PartsError as error:
        print(f"confusion.py: {error}", file=sys.stderr)
        sys.exit(2)
    except SandboxError as error:
        print(f"confusion.py: {error}", file=sys.stderr)
        sys.exit(3)
