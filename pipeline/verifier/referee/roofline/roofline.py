"""The roofline of a problem: the least time that its data and its arithmetic take on one device.

After S. Williams, A. Waterman, D. Patterson, *Roofline: an insightful visual performance model for multicore
architectures*, CACM 52 (2009), 65-76. docs/rationale/roofline.md says what is counted, and why.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from kernelproof.types.measurement import Ceilings, Roofline
from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.referee.correctness.indices import Geometry
from kernelproof.verifier.referee.inputs.problem import LoadedProblem, ProblemError
from kernelproof.verifier.referee.roofline.reads import Read, ReadTrace, union

BEYOND = 1.05
"""A call this many times faster than `needed_ms` is impossible: ceilings are measured to within 5 %."""
_ANOTHER_DRAW = 0x5DEECE66D
_SURE = 1 - 1e-9
_ROUNDING = 1e-5
"""Of an output that is about 1, or of noise around 0."""


@dataclass(frozen=True)
class Work:
    """What one forward of the reference moves and computes. All are lower bounds."""

    bytes_read: int
    """Bytes of arguments and weights that it reads at least once."""
    bytes_written: int
    """Bytes of the outputs that depend on the arguments and are no views of them."""
    operations: int
    """Operations of its matrix products, convolutions and attention."""
    bytes_needed: int
    """Bytes of the arguments that no program can do without: see `count`."""


def count(loaded: LoadedProblem, model: torch.nn.Module, arguments: list[Any], seed: int) -> Work:
    """Runs a copy of the reference once on `arguments`, and counts.

    `bytes_needed` is what remains of the arguments' part of `bytes_read` when everything is taken off that
    another program might leave out: reads that no output depends on, or only a part of an intermediate
    tensor; elements that are the same in another draw (masks, constants, structural zeros); and all weights,
    which it may transform once and keep. Raises ProblemError, and torch.OutOfMemoryError.
    """
    twin = copy.deepcopy(model)
    weights = [*twin.parameters(), *twin.buffers()]
    device = next((t.device for t in (*tensors(arguments), *weights)), torch.device("cpu"))
    with FlopCounterMode(display=False) as flops, ReadTrace(arguments, weights) as trace:
        outputs = tensors(loaded.run(twin, arguments, seed))
    reads: dict[int, list[Read]] = defaultdict(list)
    for step in trace.steps:
        for read in step.reads:
            if read.node < trace.sources and not read.passive:
                reads[read.node].append(read)
    made = _outputs(trace, outputs)
    return Work(
        bytes_read=sum(union(found, trace.nodes.nbytes[node], device) for node, found in reads.items()),
        bytes_written=sum(union(found, trace.nodes.nbytes[node], device) for node, found in made.items()),
        operations=int(flops.get_total_flops()),
        bytes_needed=_needed(trace, made, _varying_bytes(loaded, trace, arguments, seed), device),
    )


def judge(work: Work, ceilings: Ceilings, candidate_ms: float) -> Roofline:
    """The least times by `ceilings`, and how close a call of `candidate_ms` (above 0) comes to them."""
    written = max(0, work.bytes_written - ceilings.cache_bytes)
    memory_ms = (work.bytes_read + written) / ceilings.bytes_per_s * 1e3
    compute_ms = work.operations / ceilings.operations_per_s * 1e3
    return Roofline(
        bytes_read=work.bytes_read,
        bytes_written=work.bytes_written,
        bytes_needed=work.bytes_needed,
        operations=work.operations,
        memory_ms=memory_ms,
        compute_ms=compute_ms,
        needed_ms=(work.bytes_needed + written) / ceilings.bytes_per_s * 1e3,
        fraction=max(memory_ms, compute_ms) / candidate_ms,
        ceilings=ceilings,
    )


def impossible(roofline: Roofline, candidate_ms: float) -> bool:
    """Whether no program can have moved what has to be moved in `candidate_ms`.

    Meant for GPUs, whose caches are emptied before each call: on a CPU, inputs may lie in the caches. The
    bound by arithmetic decides nothing: a better algorithm needs fewer operations than the reference.
    """
    return bool(candidate_ms * BEYOND < roofline.needed_ms)


def by_other_ceilings(roofline: Roofline, ceilings: Ceilings, candidate_ms: float) -> Roofline:
    """The same work by other ceilings."""
    work = Work(roofline.bytes_read, roofline.bytes_written, roofline.operations, roofline.bytes_needed)
    return judge(work, ceilings, candidate_ms)


def has_constant_output(
    loaded: LoadedProblem, model: torch.nn.Module, draws: Sequence[list[Any]], seed: int
) -> bool:
    """Whether an output of the reference stays what it is, up to rounding, from one of two `draws` of
    arguments to the other: `x - x.mean(dim)` over a dimension of size 1 is 0 for any x.

    The trace shows operators that read the arguments, but a program may know better. Raises ProblemError, and
    torch.OutOfMemoryError.
    """
    first, second = (tensors(loaded.run(copy.deepcopy(model), arguments, seed)) for arguments in draws)
    return any(map(_same_but_for_rounding, first, second))


def _same_but_for_rounding(first: torch.Tensor, second: torch.Tensor) -> bool:
    if first.shape != second.shape or not first.numel():
        return False
    if not (first.is_floating_point() or first.is_complex()):
        return torch.equal(first, second)
    return torch.allclose(first, second, rtol=_ROUNDING, atol=_ROUNDING, equal_nan=True)


def _outputs(trace: ReadTrace, outputs: list[torch.Tensor]) -> dict[int, list[Read]]:
    """The outputs as parts of the nodes that they lie in, without those that need not be written."""
    made: dict[int, list[Read]] = defaultdict(list)
    for tensor in outputs:
        node = trace.nodes.of(tensor)
        if node is None or trace.source(tensor) is not None or not trace.nodes.varying[node]:
            continue
        place = Geometry.of(tensor)
        made[node].append(Read(node, tensor.itemsize, place.elements, place))
    return made


def _needed(
    trace: ReadTrace, output_reads: dict[int, list[Read]], varying: dict[int, int], device: torch.device
) -> int:
    """Bytes of arguments that the outputs depend on, going back from the outputs through all operators.

    An operator of whose result the share d is needed is taken to need the share d of what it reads. That is
    right for one that works element by element, and too little for others: a lower bound for all.
    """
    nbytes = trace.nodes.nbytes
    wanted: dict[int, list[tuple[float, Read]]] = defaultdict(list)
    for node, parts in output_reads.items():
        wanted[node].extend((1.0, part) for part in parts)

    def demand(node: int) -> float:
        sure = [read for share, read in wanted[node] if share >= _SURE]
        partly = max((share * read.nbytes for share, read in wanted[node]), default=0.0)
        return min(1.0, max(union(sure, nbytes[node], device), partly) / max(nbytes[node], 1))

    for step in reversed(trace.steps):
        share = max((demand(node) for node in step.makes if node in wanted), default=0.0)
        if share > 0:
            for read in step.reads:
                wanted[read.node].append((share, read))
    return sum(int(min(demand(node) * nbytes[node], most)) for node, most in varying.items())


def _varying_bytes(
    loaded: LoadedProblem, trace: ReadTrace, arguments: list[Any], seed: int
) -> dict[int, int]:
    """For each argument's node, the bytes of those elements that differ in another draw; else none."""
    mine = tensors(arguments)
    device = next((tensor.device for tensor in mine), torch.device("cpu"))
    try:
        other = tensors(loaded.draw(seed ^ _ANOTHER_DRAW, device))
    except (ProblemError, torch.OutOfMemoryError):
        return {}
    if [tensor.shape for tensor in mine] != [tensor.shape for tensor in other]:
        return {}
    found: dict[int, int] = defaultdict(int)
    for first, second in zip(mine, other, strict=True):
        node = trace.source(first)
        if node is not None:
            found[node] += int((first != second).sum()) * first.itemsize
    return found
