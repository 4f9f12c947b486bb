"""How long a call may take: no longer than a person who has the reference would wait."""

from __future__ import annotations

import time

import torch

from pipeline.referee.inputs.problem import LoadedProblem
from pipeline.referee.sides import starting
from pipeline.types import VerifySettings

LEAST_SECONDS, TIMES = {"cuda": 5.0, "cpu": 10.0}, 300.0
"""By kind of device. A call may take so long, or so many times as long as the reference's, if that is more: a
candidate that needs longer holds the device for something that nobody would use. Its first call may load
libraries, and compile (builds that we serve are not counted); a processor does that beside other work."""


def limit_calls(
    settings: VerifySettings, loaded: LoadedProblem, model: torch.nn.Module, seed: int, device: torch.device
) -> VerifySettings:
    """The settings with `call_seconds` as this reference makes sense of, never more than they say.

    The reference is called once more on the inputs of `seed`: its first call may have loaded libraries.
    """
    arguments = loaded.draw(seed, device)
    starting.settled(device)
    began = time.monotonic()
    loaded.tried(model, arguments, 0)
    starting.settled(device)
    most = max(LEAST_SECONDS[device.type], TIMES * (time.monotonic() - began))
    return settings.model_copy(update={"call_seconds": min(settings.call_seconds, most)})
