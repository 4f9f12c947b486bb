"""Is a problem fit to judge candidates? `python -m pipeline.referee.fitness` reads a Problem as JSON from
standard input and writes one Fitness record as JSON to standard output.

Every question uses the tolerance that candidates are judged by: a fake output that passes here would pass
there. Trusted code, but the problem's own code runs in this process, so the orchestrator starts it with
limits (`pipeline.problems.check`).
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch

from pipeline.contestant.encoding import tensors
from pipeline.contestant.main import configure_torch
from pipeline.devices import locks
from pipeline.problems.check import NO_DEVICE, Fitness, FitnessFinding, Unfit
from pipeline.referee.correctness.comparing import compare
from pipeline.referee.environment import describe_environment
from pipeline.referee.inputs.problem import LoadedProblem, ProblemError, mapped, truth
from pipeline.types import Problem

WEIGHT_SEED, FIRST_SEED, FORWARD_SEED = 101, 202, 303
MOST_SORTED = 1 << 24
"""To sort takes several times the memory of what is sorted, and torch sorts fewer than 2^31 on a GPU."""
OTHER_SEEDS = (404, 505)
"""Seeds of the other draws. Fixed: a report on a problem is the same every time."""


@dataclass(frozen=True)
class Subject:
    """A problem at work: one model, one draw of inputs, and what the reference makes of them."""

    loaded: LoadedProblem
    model: torch.nn.Module
    device: torch.device
    inputs: list[Any]
    native: list[torch.Tensor]
    exact: list[torch.Tensor] | None
    """The outputs in float64, None where the problem has no such form."""

    def forward(self, inputs: list[Any], seed: int = FORWARD_SEED) -> list[torch.Tensor]:
        """Output tensors for a copy of `inputs`."""
        return tensors(self.loaded.run(self.model, copied(inputs), seed))

    def accepts(self, output: int, fake: torch.Tensor) -> bool:
        """Whether a candidate's output `fake` would be judged right."""
        native = self.native[output]
        if fake.shape != native.shape or fake.dtype != native.dtype:
            return False
        exact = self.exact[output] if self.exact is not None else None
        return compare(fake, native, exact, trial="fitness", output=output).wrong == 0

    def accepts_all(self, fakes: list[torch.Tensor]) -> bool:
        """The same for all outputs at once."""
        return len(fakes) == len(self.native) and all(self.accepts(i, fake) for i, fake in enumerate(fakes))


def examine(problem: Problem, size: str, device: torch.device) -> Fitness:
    """Everything that is wrong with `problem` at `size`; never raises for what the problem does."""
    started = time.monotonic()
    configure_torch(0)  # the precision that candidates are judged in: no TF32 behind float32
    findings: list[FitnessFinding] = []
    try:
        for finding in _findings(LoadedProblem(problem, size), device):
            findings.append(finding)
    except Exception as error:
        if _is_out_of_memory(error):
            findings.append(_finding(Unfit.OUT_OF_MEMORY, f"not enough memory on {device} at size {size}"))
        elif isinstance(error, ProblemError):
            findings.append(_finding(Unfit.ERROR, str(error)))
        else:
            raise
    seconds = time.monotonic() - started
    return Fitness(
        problem_id=problem.id, size=size, device=device.type, findings=tuple(findings), seconds=seconds
    )


def _findings(loaded: LoadedProblem, device: torch.device) -> Iterator[FitnessFinding]:
    model = loaded.construct(WEIGHT_SEED, device)
    inputs = loaded.draw(FIRST_SEED, device)
    before = copied(inputs)
    native = tensors(loaded.run(model, inputs, FORWARD_SEED))
    if any(not _equal(old, new) for old, new in zip(tensors(before), tensors(inputs), strict=True)):
        yield _finding(Unfit.MUTATED_INPUT, "forward changes its inputs; work on a copy of them")
    if not native or any(leaf.numel() == 0 for leaf in native):
        yield _finding(Unfit.NO_OUTPUT, "forward returns no tensor, or an empty one; nothing can be judged")
        return
    native = [
        leaf.clone() for leaf in native
    ]  # a reference may return a buffer that its next call overwrites
    exact = truth(loaded, model, copied(before), FORWARD_SEED)
    subject = Subject(loaded, model, device, before, native, None if exact is None else tensors(exact))
    bad = [i for i, leaf in enumerate(native) if not _finite(leaf)]
    if bad:
        yield _finding(Unfit.NON_FINITE, f"output {_numbers(bad)} holds NaN or infinities", outputs=bad)
    if not _repeats(subject):
        yield _finding(
            Unfit.NONDETERMINISTIC,
            "a second call with the same inputs gives another result; remove dropout, state and randomness",
        )
        return  # the next questions would compare with chance
    for question in (_constructed_again, _faked, _replayed, _unused_inputs):
        yield from question(subject)


def _repeats(subject: Subject) -> bool:
    """Whether the same model on the same inputs, with other random numbers inside forward, does the same.

    Compared with the first result itself: a model with a state is in another one when the truth is made.
    """
    again = subject.forward(subject.inputs, FORWARD_SEED + 1)
    return len(again) == len(subject.native) and all(
        old.shape == new.shape and compare(new, old, None, trial="again", output=i).wrong == 0
        for i, (old, new) in enumerate(zip(subject.native, again, strict=True))
    )


def _constructed_again(subject: Subject) -> Iterator[FitnessFinding]:
    """Weights that are no parameters or buffers show in the output only."""
    twin = subject.loaded.construct(WEIGHT_SEED, subject.device)
    outputs = tensors(subject.loaded.run(twin, copied(subject.inputs), FORWARD_SEED))
    if not subject.accepts_all(outputs):
        yield _finding(
            Unfit.UNSTABLE_WEIGHTS,
            "two models made from one seed give different results;"
            " draw weights in the constructor, with torch's default generator",
        )


def _faked(subject: Subject) -> Iterator[FitnessFinding]:
    """Zeros, and one constant for all places: for every output by itself."""
    for output, native in enumerate(subject.native):
        if subject.accepts(output, torch.zeros_like(native)):
            yield _finding(Unfit.ZEROS, f"output {output} may as well be zeros", output=output)
            continue
        for name, value in _constants(native).items():
            if subject.accepts(output, torch.full_like(native, value)):
                text = f"output {output} may as well be the constant {value:.6g} (its {name}) everywhere"
                yield _finding(Unfit.CONSTANT, text, output=output, value=value)
                break


def _replayed(subject: Subject) -> Iterator[FitnessFinding]:
    """The output for other inputs, in place of the output asked for: for every output by itself."""
    accepted: set[int] = set()
    for seed in OTHER_SEEDS:
        other = subject.forward(subject.loaded.draw(seed, subject.device))
        if len(other) == len(subject.native):
            accepted |= {i for i, leaf in enumerate(other) if subject.accepts(i, leaf)}
    for output in sorted(accepted):
        text = f"output {output} for other inputs would be accepted: it hardly depends on the inputs"
        yield _finding(Unfit.REPLAY, text, output=output)


def _unused_inputs(subject: Subject) -> Iterator[FitnessFinding]:
    """Every input tensor by itself, replaced by another draw while the others stay."""
    other = tensors(subject.loaded.draw(OTHER_SEEDS[0], subject.device))
    mine = tensors(subject.inputs)
    if len(other) != len(mine):
        return
    for index, (old, new) in enumerate(zip(mine, other, strict=True)):
        if old.shape != new.shape:
            continue
        try:
            outputs = subject.forward(_with_tensor(subject.inputs, index, _changed(old, new)))
        except ProblemError:
            continue  # the inputs belong together, so each of them matters
        if subject.accepts_all(outputs):
            text = f"input {index} can be replaced by another draw, and the old output is still accepted"
            yield _finding(Unfit.UNUSED_INPUT, text, input=index)


def _changed(old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """`new`; where every draw is the same, the old values in reverse order, else noise on them."""
    if not _equal(old, new):
        return new
    turned = old.flatten().flip(0).view_as(old)
    if _equal(turned, old) and old.is_floating_point():
        return old + torch.randn_like(old)
    return turned


def _constants(native: torch.Tensor) -> dict[str, float]:
    """Mean and median of the finite values; for whole numbers and booleans the most frequent value. Of many
    values so many are sorted, evenly spaced."""
    flat = native.flatten()
    few = flat[:: max(1, math.ceil(flat.numel() / MOST_SORTED))]
    if not native.is_floating_point():
        return {"most frequent value": int(few.to(torch.int64).mode().values)}
    finite = torch.isfinite(flat)
    if not finite.all():
        flat, few = flat[finite], few[torch.isfinite(few)]
    if few.numel() == 0:
        return {}
    return {"mean": float(flat.mean(dtype=torch.float64)), "median": float(few.median())}


def copied(value: list[Any]) -> list[Any]:
    """The same arguments in other memory; non-tensors are shared."""
    return [mapped(item, torch.clone) for item in value]


def _with_tensor(inputs: list[Any], index: int, replacement: torch.Tensor) -> list[Any]:
    """`inputs` with its `index`-th tensor (leaves from left to right) replaced."""
    counter = iter(range(sys.maxsize))

    def change(tensor: torch.Tensor) -> torch.Tensor:
        return replacement if next(counter) == index else tensor

    return [mapped(item, change) for item in inputs]


def _equal(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Equal in shape, dtype and every value, where NaN equals NaN."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    same = left == right
    if left.is_floating_point():
        same |= left.isnan() & right.isnan()
    return bool(same.all())


def _finite(tensor: torch.Tensor) -> bool:
    return not tensor.is_floating_point() or bool(torch.isfinite(tensor).all())


def _finding(reason: Unfit, message: str, **figures: Any) -> FitnessFinding:
    return FitnessFinding(reason=reason, message=message, figures=figures)


def _numbers(indices: list[int]) -> str:
    return ", ".join(map(str, indices))


def _is_out_of_memory(error: BaseException) -> bool:
    """A GPU's or the host's; torch reports the host's as a RuntimeError of the CPU allocator."""
    causes = [error, error.__cause__]
    if any(isinstance(cause, torch.OutOfMemoryError | MemoryError) for cause in causes):
        return True
    return any("DefaultCPUAllocator" in str(cause) for cause in causes)


def _limit_memory(device: torch.device) -> None:
    """On the CPU, a reference too big for this machine gets an error of its own instead of harming others."""
    if device.type == "cpu":
        available = psutil.virtual_memory().available
        resource.setrlimit(resource.RLIMIT_DATA, (available, resource.RLIM_INFINITY))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _private_output() -> Callable[[str], None]:
    """Keeps standard output for the record; the problem's own output goes to standard error."""
    record = os.dup(1)
    os.dup2(2, 1)

    def write(text: str) -> None:
        with os.fdopen(record, "w", encoding="utf-8") as stream:
            stream.write(text + "\n")

    return write


def main() -> None:
    """Reads a Problem, writes its Fitness."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.referee.fitness", description=__doc__)
    parser.add_argument("--size", required=True, help="size preset of the problem")
    parser.add_argument("--device", required=True, help="cpu or cuda")
    parser.add_argument(
        "--waiting", type=int, required=True, help="descriptor, closed when the device is free"
    )
    arguments = parser.parse_args()
    write = _private_output()
    device = torch.device(arguments.device)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        print(f"torch sees no device {device} here; use --device cpu", file=sys.stderr)
        sys.exit(NO_DEVICE)
    _limit_memory(device)
    gpu = describe_environment(device).gpu if device.type == "cuda" else None
    with (
        os.fdopen(arguments.waiting, "w", encoding="utf-8", buffering=1) as waiting,
        # The GPU's memory is shared, and work on it disturbs a process that measures.
        locks.held(gpu.uuid, lambda text: print(text, file=waiting)) if gpu else nullcontext(),
    ):
        waiting.close()
        problem = Problem.model_validate_json(sys.stdin.buffer.read())
        write(examine(problem, arguments.size, device).model_dump_json())


if __name__ == "__main__":
    main()
