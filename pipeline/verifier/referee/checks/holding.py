"""Did a candidate do nothing while it was held between its turns?"""

from __future__ import annotations

from dataclasses import asdict

from kernelproof.types import Status
from kernelproof.types.check_kinds import HELD_STILL
from kernelproof.verifier.referee.ledger import Ledger
from kernelproof.verifier.workers.client import Contestant


def check_held(contestant: Contestant, ledger: Ledger, pair: int = 0) -> None:
    """Judges all holds of one candidate's process so far. `pair`: the number of its pair, from 0.

    Raises Ended when it worked while it was held. For that something outside of its processes must let them
    go on, such as a timer of the kernel's: a process that is held does nothing by itself. Time that may have
    been booked late accuses nobody; the rounds count it as the candidate's.
    """
    held = contestant.held_still()
    check = HELD_STILL if pair == 0 else HELD_STILL.of(f"pair {pair + 1}")
    figures = asdict(held) | {"allowed_ms": held.allowed_ms}
    if held.holds == 0:
        ledger.skipped(check, "it was not held", figures)
    elif held.woken or held.certain_ms > held.allowed_ms:
        seen = f"it used {held.ran_ms:.3g} ms of processor time in {held.holds} holds"
        seen += f", and had gone on before {held.woken} of them ended" if held.woken else ""
        raise ledger.failed(Status.CHEATING, check, seen, figures)
    else:
        seen = f"it ran for {held.ran_ms:.3g} ms in {held.holds} holds"
        if held.watched:
            seen += f", some of which were made longer: {held.certain_ms:.3g} ms of it were certainly work"
        ledger.passed(check, seen, figures)
