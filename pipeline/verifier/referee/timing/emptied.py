"""Whether the cache was emptied before each timed call, by the proof that `Flush` leaves.

A wrong proof has two causes. Work was left out: then the sum is that of an earlier step. Or the numbers were
overwritten: a kernel that writes past the end of its result reaches memory of its own process, the flush's
too. That is a fault of an honest program, and no accusation.
"""

from __future__ import annotations

from kernelproof.verifier.contestant.loop import Flush

LEFT_OUT, OVERWRITTEN = "cache_emptied", "cache_overwritten"


def flush_failure(flush: Flush, proof: object, seed: int, calls: int) -> str | None:
    """What is wrong with a contestant's `proof` of `calls` flushes from `seed`; None when it is right.

    `flush` does again what the contestant's process had to do. `LEFT_OUT`: fewer flushes give this proof, or
    it is no number, which only a runner that was tampered with sends. Else `OVERWRITTEN`.
    """
    flush.begin(seed)
    for _ in range(calls):
        flush()
    if proof == flush.proof:
        return None
    flush.begin(seed)
    for _ in range(calls):
        if proof == flush.proof:
            return LEFT_OUT
        flush()
    return OVERWRITTEN if isinstance(proof, int) else LEFT_OUT
