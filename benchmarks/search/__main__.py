"""Compares search strategies on landscapes with known optima: ``python -m benchmarks.search``.

Every strategy gets the same number of questions (`--equal tokens`: the same number of tokens) on the same
seeds. Prints tables and writes every search to a JSON file. It measures the strategies, and asserts nothing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.search import plotting
from benchmarks.search.comparing import Record, Table, record
from benchmarks.search.landscapes import LANDSCAPES
from benchmarks.search.proposer import MODELS, Model
from benchmarks.search.searching import FIRST_QUESTION, Budget, search
from benchmarks.search.showing import shown
from kernelproof.errors import UsageError
from kernelproof.runs.strategies import find_strategy
from kernelproof.version import __version__
from kernelproof.wording import counted

CHANCES = ("repair", "slip", "repeat", "bold", "combine", "plain")


def main() -> None:
    """Prints the comparison."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("--strategies", nargs="+", default=["sample", "refine"], metavar="NAME")
    parser.add_argument(
        "--landscapes", nargs="+", default=[*LANDSCAPES], choices=[*LANDSCAPES], metavar="NAME"
    )
    parser.add_argument(
        "--seeds", type=_count, default=200, help="searches of each strategy on each landscape"
    )
    parser.add_argument("--first-seed", type=int, default=0, help="others than a strategy was tuned on")
    parser.add_argument("--budget", type=_count, default=32, help="questions of one search")
    parser.add_argument("--turns", type=_count, help="most turns of a sample; left out: the budget")
    parser.add_argument(
        "--equal",
        choices=("questions", "tokens"),
        default="questions",
        help="tokens: each search may use as many as BUDGET first questions and their answers",
    )
    parser.add_argument("--model", choices=[*MODELS], default="strong", help="how often it fails")
    parser.add_argument(
        "--chance",
        type=_chance,
        action="append",
        default=[],
        metavar="NAME=P",
        help=f"of: {', '.join(CHANCES)}",
    )
    parser.add_argument("--noise", type=_noise, help="of measured speedups; left out: the landscape's own")
    parser.add_argument("--against", default="sample", help="the strategy that the others are compared with")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="draws SVGs into it; others are kept")
    parser.add_argument("--json", type=Path, default=Path("generated/benchmarks/search.json"))
    options = parser.parse_args()
    if options.plots is not None:
        plotting.require(parser)
    model = replace(MODELS[options.model], **dict(options.chance))
    try:
        records = list(searched(options, model))
    except UsageError as error:
        parser.error(str(error))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(whole(options, model, records)) + "\n")
    found = Table(records)
    print(shown(found, options.against, options.budget))
    print(f"every search is in {options.json}")
    if options.plots is not None:
        for plot in plotted(found, options):
            print(f"wrote {plot}")


def plotted(found: Table, options: argparse.Namespace) -> Iterator[Path]:
    """Draws the comparison."""
    told = f"{counted(options.seeds, 'seed')} of each of {counted(len(found.landscapes), 'landscape')}"
    told += f", model {options.model}"
    title = f"The best so far over the number of questions, by strategy: {told}"
    curves = plotting.curves(found, options.budget)
    yield plotting.write(options.plots, f"search-curves-{options.model}", curves, title)
    if options.against in found.strategies and len(found.strategies) > 1:
        title = f"The gain over that of {options.against} on each landscape, by strategy: {told}"
        gains = plotting.by_landscape(found, options.against)
        yield plotting.write(options.plots, f"search-landscapes-{options.model}", gains, title)


def searched(options: argparse.Namespace, model: Model) -> Iterator[Record]:
    """All searches. Raises UsageError for a strategy that there is not."""
    classes = {name: find_strategy(name) for name in options.strategies}
    tokens = options.budget * FIRST_QUESTION if options.equal == "tokens" else None
    budget = Budget(options.budget, tokens, options.turns)
    for landscape in options.landscapes:
        for name, strategy in classes.items():
            for seed in range(options.first_seed, options.first_seed + options.seeds):
                found = search(strategy, landscape, model, seed, budget, options.noise)
                yield record(landscape, name, seed, found, options.budget)


def whole(options: argparse.Namespace, model: Model, records: list[Record]) -> dict[str, Any]:
    """The content of the file."""
    return {
        "benchmark": "search",
        "kernelproof": __version__,
        "options": {
            name: value for name, value in vars(options).items() if name not in ("json", "plots", "chance")
        },
        "model": asdict(model),
        "records": [each.row for each in records],
    }


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _noise(text: str) -> float:
    noise = float(text)
    if not 0 <= noise <= 1:
        raise argparse.ArgumentTypeError("from 0 to 1: a standard deviation of the logarithm")
    return noise


def _chance(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    if name not in CHANCES:
        raise argparse.ArgumentTypeError(f"no chance {name!r}; there are: {', '.join(CHANCES)}")
    number = float(value)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{name} is from 0 to 1")
    return name, number


if __name__ == "__main__":
    main()
