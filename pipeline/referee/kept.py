"""What a referee keeps from one verification to the next: processes in reserve, and what still ends."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from pipeline.nouns import CoreShares, VerifySettings
from pipeline.referee.device import canary
from pipeline.referee.seats import seat
from pipeline.referee.seats.behind import Behind
from pipeline.referee.seats.spares import Spares


@dataclass(frozen=True)
class Kept:
    """What lasts from one verification to the next."""

    spares: Spares = field(default_factory=Spares)
    canaries: canary.Reserve = field(default_factory=canary.Reserve)
    behind: Behind = field(default_factory=Behind)

    def share(self, shares: CoreShares) -> None:
        """From now on these cores are kept for what is measured."""
        if shares != self.spares.shares:
            self.behind.wait()
            self.spares.share(shares)

    def prepare(self, settings: VerifySettings, device: torch.device) -> None:
        """Lets what is in reserve do on the device what it can before it is wanted. Nothing is timed now."""
        seat.greet_ahead(self.spares, settings, device)
        self.canaries.prepare()

    def settle(self) -> None:
        """Returns when nothing of all this takes time from a measurement."""
        self.behind.wait()
        self.spares.settle()
        self.canaries.settle()

    def close(self) -> None:
        """Ends all of it. It can be used again."""
        self.behind.wait()
        self.spares.close()
        self.canaries.close()
