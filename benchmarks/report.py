"""How long `kernelproof report` takes over many attempts, how large its page is, and how soon Chromium shows
it: ``python -m benchmarks.report``.

The attempts are those of `benchmarks.synthetic_attempts`, as wide as real ones. Measures; asserts nothing.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measuring import Timing, kernelproof, print_timings, time_process, write_result
from benchmarks.synthetic_attempts import ORIGINALS, fill, multiply
from kernelproof.db.connection import open_database
from tests.report.web import browser

SHOWN = "performance.getEntriesByType('navigation')[0].loadEventEnd"
"""Milliseconds from the request for a page until it is loaded and its script has run."""
PAINTED = "performance.getEntriesByType('paint')[0]?.startTime ?? 0"


def measure(attempts: int, kernels: int, runs: int, folder: Path) -> tuple[list[Timing], dict[str, Any]]:
    """The timings over a database of so many attempts, and the page's figures."""
    path = folder / "db" / "attempts.sqlite"
    database = open_database(path, create=True)
    fill(database, min(attempts, ORIGINALS), 1, random.Random(0))
    multiply(database, attempts, 1, narrow=False)
    database.close()
    page = folder / "report.html"
    command = kernelproof("report", "--workspace", str(folder), "-o", str(page), "--kernels", str(kernels))
    name = f"report, {attempts:,} attempts, {kernels} kernels"
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    first = Timing(f"{name}, the first time", command, (time.perf_counter() - begun,), (0.0,))
    timings = [first, time_process(name, command, runs)]
    facts: dict[str, Any] = {"attempts": attempts, "kernels": kernels, "page_bytes": page.stat().st_size}
    if browser.PROGRAM is not None:
        shown, painted = opened(page, runs, folder / "profile")
        timings.append(Timing(f"{name}, opened in Chromium", (), shown, painted))
    print(f"{name}: {facts['page_bytes'] / 1e6:.2f} MB; database {path.stat().st_size / 1e6:.0f} MB")
    return timings, facts


def opened(page: Path, runs: int, profile: Path) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Seconds until the page is loaded, and until something is seen of it, each time in an empty tab."""
    shown, painted = [], []
    with browser.tab(profile) as tab:
        for _ in range(runs + 1):
            tab.call("Page.navigate", url="about:blank")
            tab.open(page)
            tab.until(f"{SHOWN} > 0")
            shown.append(tab.ask(SHOWN) / 1e3)
            painted.append(tab.ask(PAINTED) / 1e3)
    return tuple(shown[1:]), tuple(painted[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attempts", type=int, nargs="+", default=[5_000, 100_000])
    parser.add_argument("--kernels", type=int, nargs="+", default=[20])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path("generated/benchmarks/report.json"))
    options = parser.parse_args()
    timings: list[Timing] = []
    pages = []
    for attempts in options.attempts:
        for kernels in options.kernels:
            with tempfile.TemporaryDirectory() as folder:
                more, facts = measure(attempts, kernels, options.runs, Path(folder))
            timings += more
            pages.append(facts)
    print_timings(timings)
    write_result(options.output, timings, pages=pages)


if __name__ == "__main__":
    main()
