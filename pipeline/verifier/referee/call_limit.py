"""How long a call may take: no longer than a person who has the reference would wait."""

from __future__ import annotations

import re
import time

import torch

from kernelproof.backends import backend
from kernelproof.pysource import compiles_itself
from kernelproof.types import VerifySettings
from kernelproof.verifier.referee.inputs.problem import LoadedProblem
from kernelproof.verifier.referee.sides import starting

LEAST_SECONDS, TIMES = {"cuda": 5.0, "cpu": 10.0}, 300.0
"""By kind of device. A call may take so long, or so many times as long as the reference's, if that is more: a
candidate that needs longer holds the device for something that nobody would use. Its first call may load
libraries, and compile (builds that we serve are not counted); a processor does that beside other work."""
BUILT_SECONDS = 3.0
"""On a GPU for a candidate whose source names nothing that compiles or tries out ways in its first call: that
loads libraries only, which the reference has just had read from the disk."""
_BUSY_AT_FIRST = re.compile(
    r"torch\s*\.\s*(?:compile|jit)|inductor|dynamo|benchmark|tun(?:e|ing)|warm|event|elapsed|chrono|perf_counter",
    re.IGNORECASE,
)


def limit_calls(
    settings: VerifySettings,
    loaded: LoadedProblem,
    model: torch.nn.Module,
    seed: int,
    device: torch.device,
    source: str,
) -> VerifySettings:
    """The settings with `call_seconds` as this reference and the candidate's `source` make sense of, at most
    as they say.

    Where kernels are interpreted they stay as they are: that takes thousands of times as long.

    The reference is called once more on the inputs of `seed`: its first call may have loaded libraries.
    """
    if device.type == "cpu" and backend(settings.backend).on_gpu:  # interpreted
        return settings
    arguments = loaded.draw(seed, device)
    starting.settled(device)
    began = time.monotonic()
    loaded.tried(model, arguments, 0)
    starting.settled(device)
    most = max(least_seconds(device.type, source), TIMES * (time.monotonic() - began))
    return settings.model_copy(update={"call_seconds": min(settings.call_seconds, most)})


def least_seconds(device: str, source: str) -> float:
    """What a call of this candidate may take in any case, on this kind of device."""
    at_first = compiles_itself(source) or _BUSY_AT_FIRST.search(source) is not None
    return LEAST_SECONDS[device] if at_first or device != "cuda" else BUILT_SECONDS
