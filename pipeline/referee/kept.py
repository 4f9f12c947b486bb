"""What a referee keeps from one verification to the next: processes in reserve, and what still ends."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from pipeline.nouns import VerifySettings
from pipeline.referee.device import canary
from pipeline.referee.seats import seat
from pipeline.referee.seats.endings import Endings
from pipeline.referee.seats.spares import Spares


@dataclass(frozen=True)
class Kept:
    """What lasts from one verification to the next."""

    spares: Spares = field(default_factory=Spares)
    canaries: canary.Reserve = field(default_factory=canary.Reserve)
    endings: Endings = field(default_factory=Endings)

    def prepare(self, settings: VerifySettings, device: torch.device) -> None:
        """Lets what is in reserve do on the device what it can before it is wanted. Nothing is timed now."""
        seat.greet_ahead(self.spares, settings, device)
        self.canaries.prepare()

    def settle(self) -> None:
        """Returns when nothing of all this takes time from a measurement."""
        self.spares.settle()
        self.canaries.settle()
        self.endings.wait()

    def close(self) -> None:
        """Ends all of it. It can be used again."""
        self.spares.close()
        self.canaries.close()
        self.endings.wait()
