"""Is a problem fit to judge candidates? Would a fake be accepted, does everything matter, does it repeat?

`python -m kernelproof.verifier.referee.fitness` reads a Problem as JSON from standard input and writes one
Fitness record as JSON to standard output.

Each question is a function that yields findings about a Subject. Every question uses the tolerance that
candidates are judged by: a fake output that passes here would pass there. This code is trusted, but the
problem's own code runs in this process, so the orchestrator starts it with limits
(`kernelproof.problems.check`).
"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    gc.disable()  # importing makes objects by the hundred thousand, and none of them is garbage

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

from kernelproof.types import Problem
from kernelproof.types.problem import NO_DEVICE, Fitness, FitnessFinding, Unfit
from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.contestant.loop import outputs_of
from kernelproof.verifier.contestant.main import configure_torch
from kernelproof.verifier.devices import locks
from kernelproof.verifier.referee.correctness.comparing import Yardstick, compare, compare_with
from kernelproof.verifier.referee.correctness.rounding import yardsticks
from kernelproof.verifier.referee.correctness.tolerance import norm_floor
from kernelproof.verifier.referee.environment import describe_environment
from kernelproof.verifier.referee.inputs.problem import LoadedProblem, ProblemError, mapped
from kernelproof.wording import counted

WEIGHT_SEED, FIRST_SEED, FORWARD_SEED = 101, 202, 303
MOST_SORTED = 1 << 24
"""To sort takes several times the memory of what is sorted, and torch sorts fewer than 2^31 on a GPU."""
GROSS_SHARE = 2.0**-6
"""No output may be too large by this share or by four times its dtype's floor, whichever is more."""
ZEROED_SHARE = 0.9
"""Share of the elements, the smallest ones, that may not be left out."""
OFF_SHARE = 2.0**-4
"""Standard deviation of what each input element is off by, as a share of it."""
MOST_NAMED = 5
"""Parameters that a message names."""
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
    sticks: list[Yardstick]
    """What each output is held against."""

    def forward(self, inputs: list[Any], seed: int = FORWARD_SEED) -> list[torch.Tensor]:
        """Output tensors for a copy of `inputs`."""
        return outputs_of(self.loaded.run(self.model, copied(inputs), seed), self.device)

    def accepts(self, output: int, fake: torch.Tensor) -> bool:
        """Whether a candidate's output `fake` would be judged right."""
        native = self.native[output]
        if fake.shape != native.shape or fake.dtype != native.dtype:
            return False
        return compare_with(self.sticks[output], fake, trial="fitness", output=output).wrong == 0

    def accepts_all(self, fakes: list[torch.Tensor]) -> bool:
        """The same for all outputs at once."""
        return len(fakes) == len(self.native) and all(self.accepts(i, fake) for i, fake in enumerate(fakes))


def findings(loaded: LoadedProblem, device: torch.device) -> Iterator[FitnessFinding]:
    """What makes the problem unfit, as it is found. Raises ProblemError where its code raises."""
    model = loaded.construct(WEIGHT_SEED, device)
    inputs = loaded.draw(FIRST_SEED, device)
    before = copied(inputs)
    native = outputs_of(value := loaded.run(model, inputs, FORWARD_SEED), device)
    if any(not _equal(old, new) for old, new in zip(tensors(before), tensors(inputs), strict=True)):
        yield finding(Unfit.MUTATED_INPUT, "forward changes its inputs; work on a copy of them")
    if not tensors(value) or any(leaf.numel() == 0 for leaf in native):
        yield finding(Unfit.NO_OUTPUT, "forward returns no tensor, or an empty one; nothing can be judged")
        return
    native = [
        leaf.clone() for leaf in native
    ]  # a reference may return a buffer that its next call overwrites
    sticks = yardsticks(loaded, model, copied(before), FORWARD_SEED, native, device)
    subject = Subject(loaded, model, device, before, native, sticks)
    bad = [i for i, leaf in enumerate(native) if not _finite(leaf)]
    if bad:
        yield finding(Unfit.NON_FINITE, f"output {_numbers(bad)} holds NaN or infinities", outputs=bad)
    if not _repeats(subject):
        yield finding(
            Unfit.NONDETERMINISTIC,
            "a second call with the same inputs gives another result; remove dropout, state and randomness",
        )
        return  # the next questions would compare with chance
    noise = list(_noise(subject))
    yield from noise
    if len(noise) == len(native):
        return  # whatever is of its size would be accepted
    yield from _constructed_again(subject)
    yield from (gross := [*_faked(subject), *_replayed(subject)])
    yield from _unused_inputs(subject)
    if not gross:  # where nothing matters, neither does a part of it
        for question in (_coarse, _perturbed, _dead_weights):
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
    outputs = outputs_of(subject.loaded.run(twin, copied(subject.inputs), FORWARD_SEED), subject.device)
    if not subject.accepts_all(outputs):
        yield finding(
            Unfit.UNSTABLE_WEIGHTS,
            "two models made from one seed give different results;"
            " draw weights in the constructor, with torch's default generator",
        )


def _noise(subject: Subject) -> Iterator[FitnessFinding]:
    """Outputs that rounding alone decides."""
    for output, stick in enumerate(subject.sticks):
        if stick.noise is not None:
            few, size = int((stick.noise > 0).sum()), float(stick.noise.max())
            text = (
                f"output {output} is rounding noise in {few} of {counted(stick.noise.numel(), 'element')}: "
                f"large terms cancel, and rounding alone changes what is left by up to {size:.2g}; "
                "anything of that size would be accepted, zeros too"
            )
            yield finding(Unfit.NOISE, text, output=output, elements=few, size=size)


def _faked(subject: Subject) -> Iterator[FitnessFinding]:
    """Zeros, and one constant for all places: for every output by itself."""
    for output, native in enumerate(subject.native):
        if subject.accepts(output, torch.zeros_like(native)):
            yield finding(Unfit.ZEROS, f"output {output} may as well be zeros", output=output)
            continue
        for name, value in _constants(native).items():
            if subject.accepts(output, torch.full_like(native, value)):
                text = f"output {output} may as well be the constant {value:.6g} (its {name}) everywhere"
                yield finding(Unfit.CONSTANT, text, output=output, value=value)
                break


def _coarse(subject: Subject) -> Iterator[FitnessFinding]:
    """Gross errors that a wide tolerance would let pass: for every output by itself.

    Outputs of whole numbers or of zeros cannot be wrong in such a way, and are left out.
    """
    for output, native in enumerate(subject.native):
        if not native.is_floating_point() or not bool((native != 0).any()):
            continue
        share = max(GROSS_SHARE, 4 * norm_floor(native.dtype))
        if subject.accepts(output, native * (1 + share)):
            text = f"output {output} may as well be {100 * share:.2g} % too large: so much is rounding here"
            yield finding(Unfit.SCALED, text, output=output, share=share)
        elif (fake := _mostly_zeros(native)) is not None and subject.accepts(output, fake):
            text = (
                f"nine tenths of output {output} may as well be zeros: the other elements are so large "
                "that errors there do not count"
            )
            yield finding(Unfit.MOSTLY_ZEROS, text, output=output)


def _mostly_zeros(native: torch.Tensor) -> torch.Tensor | None:
    """`native` with zeros in place of the smallest nine tenths of what is not zero; None where none are.

    Of many elements the limit is that of so many as are sorted, evenly spaced.
    """
    size = native.abs().float()
    sizes = size[size > 0]
    few = sizes[:: max(1, math.ceil(sizes.numel() / MOST_SORTED))]
    limit = few.sort().values[int(ZEROED_SHARE * few.numel())]
    fake = torch.where(size < limit, torch.zeros_like(native), native)
    return None if _equal(fake, native) else fake


def _perturbed(subject: Subject) -> Iterator[FitnessFinding]:
    """The output for inputs that are off: for all floating inputs at once, and every output by itself."""
    generator = torch.Generator(subject.device).manual_seed(OTHER_SEEDS[0])

    def off(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        noise = torch.randn(tensor.shape, generator=generator, device=tensor.device)
        return tensor + tensor * (OFF_SHARE * noise).to(tensor.dtype)

    inputs = [mapped(item, off) for item in subject.inputs]
    if all(_equal(old, new) for old, new in zip(tensors(subject.inputs), tensors(inputs), strict=True)):
        return
    try:
        outputs = subject.forward(inputs)
    except ProblemError:
        return  # these inputs cannot be changed in this way
    if subject.accepts_all(outputs):
        text = (
            f"the outputs for inputs that are {100 * OFF_SHARE:.0f} % off would be accepted: "
            "errors hide in the tolerance"
        )
        yield finding(Unfit.PERTURBED, text, share=OFF_SHARE)


def _replayed(subject: Subject) -> Iterator[FitnessFinding]:
    """The output for other inputs, in place of the output asked for: for every output by itself."""
    accepted: set[int] = set()
    for seed in OTHER_SEEDS:
        other = subject.forward(subject.loaded.draw(seed, subject.device))
        if len(other) == len(subject.native):
            accepted |= {i for i, leaf in enumerate(other) if subject.accepts(i, leaf)}
    for output in sorted(accepted):
        text = f"output {output} for other inputs would be accepted: it hardly depends on the inputs"
        yield finding(Unfit.REPLAY, text, output=output)


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
            yield finding(Unfit.UNUSED_INPUT, text, input=index)


def _dead_weights(subject: Subject) -> Iterator[FitnessFinding]:
    """Every parameter by itself, replaced by other values of its size while the others stay."""
    generator = torch.Generator(subject.device).manual_seed(OTHER_SEEDS[1])
    dead: list[str] = []
    for name, parameter in subject.model.named_parameters():
        if not parameter.is_floating_point() or parameter.numel() == 0:
            continue
        before = parameter.detach().clone()
        scale = float(torch.linalg.vector_norm(before.double())) / math.sqrt(before.numel()) or 1.0
        noise = torch.randn(before.shape, generator=generator, device=before.device)
        try:
            parameter.data.add_((scale * noise).to(before.dtype))
            outputs = subject.forward(subject.inputs)
        except ProblemError:
            continue  # forward refuses other values, so it looks at them
        finally:
            parameter.data.copy_(before)
        if subject.accepts_all(outputs):
            dead.append(name)
    if dead:
        shown = ", ".join(dead[:MOST_NAMED]) + (
            f" and {len(dead) - MOST_NAMED} more" if dead[MOST_NAMED:] else ""
        )
        text = f"{shown} can be replaced by other values, and the old output is still accepted"
        yield finding(Unfit.DEAD_WEIGHT, text, parameters=dead)


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
    return {
        "mean": float(flat.mean(dtype=torch.float64)),
        "median": float(few.median()),
    }


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


def finding(reason: Unfit, message: str, **figures: Any) -> FitnessFinding:
    """A finding with its figures."""
    return FitnessFinding(reason=reason, message=message, figures=figures)


def _numbers(indices: list[int]) -> str:
    return ", ".join(map(str, indices))


def examine(problem: Problem, size: str, device: torch.device) -> Fitness:
    """Everything that is wrong with `problem` at `size`; never raises for what the problem does."""
    started = time.monotonic()
    configure_torch(0)  # the precision that candidates are judged in: no TF32 behind float32
    found: list[FitnessFinding] = []
    try:
        for each in findings(LoadedProblem(problem, size), device):
            found.append(each)
    except Exception as error:
        if _is_out_of_memory(error):
            found.append(finding(Unfit.OUT_OF_MEMORY, f"not enough memory on {device} at size {size}"))
        elif isinstance(error, ProblemError):
            found.append(finding(Unfit.ERROR, str(error)))
        else:
            raise
    seconds = time.monotonic() - started
    return Fitness(
        problem_id=problem.id, size=size, device=device.type, findings=tuple(found), seconds=seconds
    )


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
    gc.freeze()  # imported objects stay
    gc.enable()
    parser = argparse.ArgumentParser(
        prog="python -m kernelproof.verifier.referee.fitness", description=__doc__
    )
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
