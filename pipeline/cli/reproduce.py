"""`kernelproof reproduce`: anybody's number, checked on this machine: a stored attempt's, or a bundle's. And
`kernelproof bundle`: one file from which a stranger reproduces a number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelproof.choices import ROW, Rigor
from kernelproof.cli.completion import attempts
from kernelproof.cli.declaring import Argument, Option, parsed_path
from kernelproof.cli.options import (
    AllRankedOption,
    FilterOptions,
    JsonOption,
    OutputOption,
    StorageOptions,
    SuiteOption,
    UnsafeOption,
    explicit_options,
    refuse_several,
)
from kernelproof.errors import UsageError
from kernelproof.report.plain import json_text, say, screen
from kernelproof.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kernelproof.db.store import Store
    from kernelproof.runs.bundles.reader import Bundle, CheckedAttempt
    from kernelproof.runs.bundles.signing import Signers
    from kernelproof.types import Reproduction
    from kernelproof.types.reproduction import Bundled
    from kernelproof.workspace import DatabasePlace

_ATTEMPT = re.compile(r"#?[0-9]{1,18}|last")


@dataclass(frozen=True)
class BundleOptions:
    attempt: Annotated[list[int] | None, Option("Of a bundle, this attempt only; may be repeated.", ROW)] = (
        None
    )
    list_: Annotated[bool, Option("Say what a bundle holds, and run nothing.", names=("--list",))] = False
    trust_problems: Annotated[
        bool, Option("Run a bundle's own problems, with your rights. Read them first.")
    ] = False
    suite: SuiteOption = None
    signers: Annotated[
        Path | None,
        Option("Of a bundle: it must be signed by a key in this file of allowed signers (man ssh-keygen)."),
    ] = None
    revoked: Annotated[Path | None, Option("With --signers: SSH keys that it must not be signed by.")] = None


def reproduce(
    what: Annotated[
        str,
        Argument("The attempt's number (17 or '#17'), or: last; or the file of a bundle.", offered=attempts),
    ],
    *,
    context: typer.Context,
    rigor: Annotated[
        Rigor | None, Option("How exact the new measurement is [default: as the first one].")
    ] = None,
    options: BundleOptions,
    storage: StorageOptions,
    as_json: JsonOption = False,
    unsafe: UnsafeOption = False,
) -> None:
    """Build and verify an attempt again, from the workspace or from a bundle, and compare.

    Exit code 0 when the result is confirmed (same or faster), 1 when it is not, 3 when it cannot be compared
    on this machine.
    """
    if not _ATTEMPT.fullmatch(what):
        code = _reproduce_bundle(_file(what), options, rigor, as_json, unsafe)
    else:
        _refuse_bundle_options(options, context)
        code = _reproduce_stored(what, storage.database, rigor, as_json, unsafe)
    if code:
        raise typer.Exit(code)


def _file(what: str) -> Path:
    path = parsed_path(what)
    if not path.exists():
        raise UsageError(
            f"{what!r} names no attempt, and there is no such file; give a number (17 or #17), or: last; or "
            "the file of a bundle"
        )
    return path


def exit_code(results: Iterable[Reproduction]) -> int:
    """1 where a result is not confirmed, 3 where one cannot be compared here, else 0."""
    from kernelproof.types import ReproductionFinding as Finding

    findings = {one.finding for one in results}
    if any(not finding.confirms and finding is not Finding.NOT_COMPARABLE for finding in findings):
        return 1
    return 3 if Finding.NOT_COMPARABLE in findings else 0


def _refuse_bundle_options(options: BundleOptions, context: typer.Context) -> None:
    if given := [name.rstrip("_").replace("_", "-") for name in explicit_options(options, context)]:
        raise UsageError(f"--{given[0]} is for bundles; leave it out, or give a bundle's file")


def _reproduce_stored(
    what: str, database: DatabasePlace, rigor: Rigor | None, as_json: bool, unsafe: bool
) -> int:
    from kernelproof.db.store import open_store
    from kernelproof.report.verification import print_reproduction
    from kernelproof.runs.reproduction import reproduce as run
    from kernelproof.verifier.engine.engine import Engine

    with open_store(database, create=False) as store, Engine(unsafe=unsafe) as engine:
        result = run(store, store.resolve_attempt(what), engine, rigor=rigor)
    if as_json:
        print(json_text(result))
    else:
        print_reproduction(result, screen())
    return exit_code([result])


def _reproduce_bundle(
    path: Path, options: BundleOptions, rigor: Rigor | None, as_json: bool, unsafe: bool
) -> int:
    from kernelproof.report.verification import print_bundle, print_reproduction, print_tampering
    from kernelproof.runs.bundles.reader import Bundle

    signers = _signers(options)
    refuse_several([name for name, given in {"--list": options.list_, "--json": as_json}.items() if given])
    console = screen()
    with Bundle(path, signers) as bundle:
        if bundle.signer is not None and not as_json:
            say(f"{path}: signed by {bundle.signer}")
        numbers = _chosen(bundle, options.attempt)
        results: list[Reproduction] = []
        if bundle.tampering:
            if not as_json:
                print_tampering(path, bundle.tampering, console)
        elif options.list_:
            checked = {number: bundle.checked_attempt(number) for number in numbers}
            print_bundle(path, bundle.sha256, {n: one.attempt for n, one in checked.items()}, console)
            return 0
        else:
            for result in _reproduced(bundle, numbers, options, rigor, unsafe):
                results.append(result)
                if not as_json:
                    print_reproduction(result, console)
        if as_json:
            _print_json(bundle, results)
        return 1 if bundle.tampering else exit_code(results)


def _signers(options: BundleOptions) -> Signers | None:
    from kernelproof.runs.bundles.signing import Signers

    if options.signers is None and options.revoked is not None:
        raise UsageError("--revoked needs --signers")
    return Signers(options.signers, options.revoked) if options.signers else None


def _chosen(bundle: Bundle, wanted: Sequence[int] | None) -> list[int]:
    held = bundle.numbers
    if missing := [number for number in wanted or () if number not in held]:
        some = ", ".join(map(str, held[:20])) + (" ..." if len(held) > 20 else "")
        raise UsageError(f"the bundle has no attempt {missing[0]}; it has {some}")
    return [number for number in held if not wanted or number in wanted]


def _reproduced(
    bundle: Bundle, numbers: list[int], options: BundleOptions, rigor: Rigor | None, unsafe: bool
) -> Iterable[Reproduction]:
    """One attempt after the other; none is run before the problems of all are trusted."""
    from kernelproof.runs.reproduction import reproduce_bundled
    from kernelproof.verifier.engine.engine import Engine

    if not options.trust_problems:
        _hold_problems(bundle, numbers, options.suite)
    with Engine(unsafe=unsafe) as engine:
        for number in numbers:
            yield reproduce_bundled(
                bundle.checked_attempt(number), number, engine, rigor=rigor, unsafe=unsafe
            )


def _hold_problems(bundle: Bundle, numbers: Sequence[int], suite: Path | None) -> None:
    from kernelproof.problems import open_suite
    from kernelproof.runs.reproduction import unknown_problems

    checked: Iterable[CheckedAttempt] = map(bundle.checked_attempt, numbers)
    sound: list[Bundled] = [one.attempt for one in checked if one.attempt and not one.tampering]
    for attempt in unknown_problems(sound, open_suite(suite)):
        where = "--suite" if suite else "the packaged problems"
        raise UsageError(
            f"the problem {attempt.problem.id} is not one of {where}. "
            f"Its code would run with your rights and decides what is right: read it (unzip -p {bundle.path} "
            f"attempts/{attempt.number}/problem.py), then give --trust-problems; or --suite with your copy"
        )


def _print_json(bundle: Bundle, results: list[Reproduction]) -> None:
    facts = {"bundle": bundle.sha256, "signer": bundle.signer, "tampering": bundle.tampering}
    print(json_text({**facts, "reproductions": results}))


def bundle(
    attempt: Annotated[
        str | None,
        Argument(
            "The attempt's number (17 or '#17'), or: last [default: those that pass the filters].",
            offered=attempts,
        ),
    ] = None,
    *,
    context: typer.Context,
    output: OutputOption,
    sign: Annotated[
        Path | None, Option("SSH key that signs it, for reproduce --signers: <output>.sig is written too.")
    ] = None,
    all_ranked: AllRankedOption = False,
    options: FilterOptions,
    storage: StorageOptions,
) -> None:
    """Write an attempt, or the best of each problem, to one file, for kernelproof reproduce elsewhere."""
    from kernelproof.db.store import open_store
    from kernelproof.runs.bundles.signing import signature_of
    from kernelproof.runs.bundles.writer import write_bundle

    filtered = all_ranked or bool(explicit_options(options, context))
    if (attempt is not None) is filtered:
        raise UsageError("give one attempt, or filters as leaderboard takes them, or --all-ranked")
    with open_store(storage.database, only_read=True) as store:
        chosen = list(_to_bundle(store, attempt, options))
        sha256, size = write_bundle(chosen, output, sign)
    say(f"{output}: {counted(len(chosen), 'attempt')}, {size / 1000:,.0f} kB, sha256 {sha256}")
    if sign is not None:
        say(f"{signature_of(output)}: its signature")


def _to_bundle(store: Store, attempt: str | None, options: FilterOptions) -> Iterator[Bundled]:
    from kernelproof.runs.bundles.writer import bundled
    from kernelproof.runs.reproduction import leaders

    if attempt is not None:
        yield bundled(store, store.resolve_attempt(attempt))
        return
    for leader in leaders(store, options.filters()):
        yield bundled(store, leader.best.attempt_id, leader.best.verification_id)
