"""How many CUDA contexts a second the driver makes, on one GPU and on all of a host:
``python -m benchmarks.contexts``.

Every timed candidate uses up two processes with a context each. The driver makes contexts under a lock of the
host, so this rate ends the scaling of judges over GPUs. Fresh processes call cuInit, retain the primary
context of one GPU and end, so many at once. Also with `CUDA_DEVICE_MAX_CONNECTIONS=1`, which makes a context
cheaper, but puts a candidate's streams into one queue. Prints medians; needs a GPU.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

# Children run this file with -S, so it imports the standard library alone.
LOOK_S = 0.002
CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS"
VISIBLE = "CUDA_VISIBLE_DEVICES"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each line")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(*make_one())
        return
    names = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout
    gpus = [str(number) for number in range(len(names.splitlines()))]
    print("GPUs  at once  connections  contexts/s  cuInit ms  context ms")
    for used in [gpus[:1], gpus] if len(gpus) > 1 else [gpus]:
        for at_once in (len(used), 4 * len(used)):
            for more in ({}, {CONNECTIONS: "1"}):
                rate, init, context = rates(used, at_once, more, options.seconds)
                figures = f"{rate:10.2f}  {1e3 * init:9.0f}  {1e3 * context:10.0f}"
                print(
                    f"{len(used):4}  {at_once:7}  {more.get(CONNECTIONS, 'default'):>11}  {figures}",
                    flush=True,
                )


def make_one() -> tuple[float, float]:
    """Seconds of cuInit, and of the primary context of the first visible GPU. Raises RuntimeError."""
    driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    began = time.perf_counter()
    failed = driver.cuInit(0)
    initialised = time.perf_counter()
    failed = failed or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    if failed:
        raise RuntimeError(f"the driver says error {failed}")
    return initialised - began, time.perf_counter() - initialised


def rates(
    gpus: Sequence[str], at_once: int, more: dict[str, str], seconds: float
) -> tuple[float, float, float]:
    """Contexts a second, and the medians of `make_one`, by so many processes at once, over `gpus` in turn."""
    began, started = time.monotonic(), 0
    running: list[subprocess.Popen[str]] = []
    figures: list[list[float]] = []
    while running or not started:
        while len(running) < at_once and time.monotonic() - began < seconds:
            visible = {VISIBLE: gpus[started % len(gpus)]}
            command = [sys.executable, "-S", str(Path(__file__)), "--one"]
            environment = os.environ | visible | more
            running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment))
            started += 1
        for process in [each for each in running if each.poll() is not None]:
            running.remove(process)
            figures.append([float(figure) for figure in process.communicate()[0].split()])
        time.sleep(LOOK_S)
    rate = len(figures) / (time.monotonic() - began)
    return rate, median(init for init, _ in figures), median(context for _, context in figures)


if __name__ == "__main__":
    main()
