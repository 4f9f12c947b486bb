"""Which programs are said to work while they are held: ``python -m benchmarks.holding``.

Each case is a job whose threads or children sleep, doze, spin for a while or collect garbage. It is held as
in a measurement, on 2, 16 and all cores, quiet and beside other programs, by SIGSTOP and by a control group
where one is to be had. The last case works while it is held. Prints a table: what a first reading right after
the hold would say (`old`), what the settled reading says (`new`), and who is accused by it. Ends with 1 when
somebody is accused who does not work, or who works is not.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.evidence import table
from kernelproof.verifier.devices.discovery import gpus
from kernelproof.verifier.sandbox import Held, Job, Limits, Process, probe, python_paths, start

PROGRAM = """
import gc, os, signal, sys, threading, time

kind, count = sys.argv[1], int(sys.argv[2])

def asleep():
    threading.Event().wait()

def dozing():
    while True:
        time.sleep(0.0003)

def spinning():
    while True:
        until = time.monotonic() + 0.002
        while time.monotonic() < until:
            pass
        time.sleep(0.001)

def collecting():
    while True:
        cycles = [[] for _ in range(5000)]
        for cycle in cycles:
            cycle.append(cycle)
        del cycles, cycle
        gc.collect()

def child():
    if os.fork() == 0:
        time.sleep(600)

def torch():
    import torch
    x = torch.ones(1 << 20)
    while True:
        x.add_(1)
        time.sleep(0.001)

def cuda():
    import torch
    x = torch.ones(1 << 20, device="cuda")
    while True:
        x.add_(1)
        torch.cuda.synchronize()

def triton():
    import torch
    x, step = torch.ones(1 << 20, device="cuda"), torch.compile(lambda x: x * 2 + 1)
    while True:
        step(x)
        torch.cuda.synchronize()

for _ in range(count):
    if kind == "child":
        child()
    else:
        threading.Thread(target=globals()[kind], daemon=True).start()
time.sleep(float(sys.argv[3]))
open("begun", "w").close()
while True:
    sum(range(2000))
    time.sleep(0.0005)
"""


@dataclass(frozen=True)
class Case:
    """A job, and whether somebody outside continues it while it is held."""

    kind: str
    count: int
    works: bool = False
    warm_s: float = 0.2
    gpu: bool = False

    @property
    def name(self) -> str:
        """As the table has it."""
        return f"{self.kind} {self.count}" + (", continued from outside" if self.works else "")


CASES = [
    *(Case("asleep", count) for count in (2, 100, 250)),
    Case("dozing", 100),
    Case("spinning", 7),
    Case("spinning", 64),
    Case("collecting", 2),
    Case("child", 20),
    Case("torch", 1, warm_s=10),
    Case("cuda", 1, warm_s=20, gpu=True),
    Case("triton", 1, warm_s=60, gpu=True),
    Case("spinning", 2, works=True),
]


@contextmanager
def beside(programs: int) -> Iterator[None]:
    """So many other programs that want a core."""
    with ExitStack() as stack:
        for _ in range(programs):
            other = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(other.kill)
        yield


def held(case: Case, holds: int, *, group: bool) -> Held:
    """Starts the case and holds it so many times, each 5 ms."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        argv = (sys.executable, "-I", "-c", PROGRAM, case.kind, str(case.count), str(case.warm_s))
        visible = tuple(gpu.index for gpu in gpus())[:1] if case.gpu else ()
        limits = Limits(wall_s=None)  # to start Triton takes a minute
        job = Job(
            argv=argv,
            scratch=scratch,
            limits=limits,
            read_only=python_paths(),
            gpus=visible,
            pausable=group,
        )
        with start(job) as process:
            deadline = time.monotonic() + case.warm_s + 120
            while not (scratch / "begun").exists():
                if process.wait(0.05) is not None or time.monotonic() > deadline:
                    raise SystemExit(f"{case.name} did not start: {process.output()[1][-500:]}")
            for _ in range(holds):
                _hold(process, case)
            return process.held_still()


def _hold(process: Process, case: Case) -> None:
    process.halt()
    process.resume()  # its threads still wake up when it is held again
    process.pause()
    if case.works:
        for pid in process.pids():
            os.kill(pid, signal.SIGCONT)
    time.sleep(0.005)
    process.look()
    process.resume()
    time.sleep(0.002)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0] if __doc__ else None)
    parser.add_argument("--holds", type=int, default=35)
    parser.add_argument("--cores", type=int, nargs="*", default=[2, 16, os.cpu_count() or 1])
    parser.add_argument("--kinds", nargs="*", help="of the cases; default: all that this machine can run")
    options = parser.parse_args(arguments)
    mine = sorted(os.sched_getaffinity(0))
    numbers = sorted({min(number, len(mine)) for number in options.cores})
    ways = [False] if probe().layers["pause"] == "SIGSTOP" else [False, True]
    rows, wrong = [], 0
    for case in CASES:
        if (options.kinds and case.kind not in options.kinds) or (case.gpu and not gpus()):
            continue
        # No signal continues what a control group holds.
        for cores, group in ((cores, way) for cores in numbers for way in ways if not (case.works and way)):
            for programs in (0, 2 * cores):
                os.sched_setaffinity(0, mine[:cores])
                with beside(programs):
                    seen = held(case, options.holds, group=group)
                old = seen.woken > 0 or seen.ran_ms + seen.settling_ms > seen.allowed_ms
                new = seen.woken > 0 or seen.certain_ms > seen.allowed_ms
                wrong += new != case.works
                load, way = (str(programs) if programs else "quiet"), ("group" if group else "SIGSTOP")
                figures = [f"{seen.ran_ms + seen.settling_ms:.3f}", f"{seen.ran_ms:.3f}"]
                figures += [f"{seen.certain_ms:.3f}", f"{seen.allowed_ms:.2f}", str(seen.watched)]
                said = ["yes" if accused else "no" for accused in (old, new)]
                rows.append([case.name, str(cores), load, way, str(seen.holds), *figures, *said])
                print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    heads = ["case", "cores", "load", "held by", "holds", "old ms", "new ms", "certain ms", "allowed ms"]
    print(table([*heads, "watched", "accused before", "accused"], rows))
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
