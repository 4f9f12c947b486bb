"""Did a candidate do nothing while it was held between its turns?"""

from __future__ import annotations

from kernelproof.referee.ledger import Ledger
from kernelproof.sandbox import Held
from kernelproof.types import Status
from kernelproof.workers.client import Contestant

ALLOWED_MS, ALLOWED_MS_A_HOLD, ALLOWED_MS_A_THREAD = 0.5, 0.01, 0.001
"""Processor time that all holds of one process tree may show together: so much, so much more for each hold,
and for each of its threads in each hold.

A process held by SIGSTOP shows none at all: 0 ns in 200 holds of 30 threads under a timer of 2 kHz. A process
held by a control group shows the time to receive a signal and to be held again: 1 to 3 us a hold there, 0.2
to 0.5 ms in all, on a machine that others loaded; of some 100 sleeping threads beside a GPU's 45 us a hold. A
candidate that computes ahead within this gains some 20 us a block, and 1 us for each thread that it brings
along.
"""
_ASKED = "Was it still while it was held between its turns?"


def check_held(contestant: Contestant, ledger: Ledger, pair: int = 0) -> None:
    """Judges all holds of one candidate's process so far. `pair`: the number of its pair, from 0.

    Raises Ended when it ran while it was held. For that something outside of its processes must let them go
    on, such as a timer of the kernel's: a process that is held does nothing by itself.
    """
    held = contestant.held_still()
    name = "held_still" if pair == 0 else f"held_still: pair {pair + 1}"
    figures = {
        "holds": held.holds,
        "ran_ms": held.ran_ms,
        "woken": held.woken,
        "threads": held.threads,
        "allowed_ms": allowed_ms(held),
    }
    if held.holds == 0:
        ledger.skipped(name, _ASKED, "it was not held", figures)
    elif held.woken or held.ran_ms > allowed_ms(held):
        seen = f"it used {held.ran_ms:.3g} ms of processor time in {held.holds} holds"
        seen += f", and had gone on before {held.woken} of them ended" if held.woken else ""
        raise ledger.failed(Status.CHEATING, name, _ASKED, seen, figures)
    else:
        ledger.passed(name, _ASKED, f"it ran for {held.ran_ms:.3g} ms in {held.holds} holds", figures)


def allowed_ms(held: Held) -> float:
    """The most that so many holds may show, in milliseconds."""
    return ALLOWED_MS + (ALLOWED_MS_A_HOLD + ALLOWED_MS_A_THREAD * held.threads) * held.holds
