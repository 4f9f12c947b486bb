"""A host with GPUs that are not there, whose referees say what they were given."""

from __future__ import annotations

from kernelproof.problems import open_suite
from kernelproof.types import Verification, VerifySettings
from kernelproof.verifier.devices.discovery import Gpu
from kernelproof.verifier.engine.engine import Engine

GPUS = tuple(Gpu(uuid=f"GPU-{letter}1", name="NVIDIA H200", index=i) for i, letter in enumerate("abc"))
SOURCE = "import torch.nn as nn\n\nclass ModelNew(nn.Module):\n    def forward(self, x):\n        return x\n"
SETTINGS = VerifySettings(backend="cuda", size="small")

REFEREE = """#!{python}
import os, sys, time
from pathlib import Path
import kernelproof.verifier.referee.__main__ as room
from kernelproof.errors import DeviceUnfit
from kernelproof.types import Status, Verification
from kernelproof.verifier.devices import quarantine
from kernelproof.types.verification import VerifyRequest

def answer(message, *_):
    gpu = os.environ["CUDA_VISIBLE_DEVICES"]
    {before}
    if gpu in {broken!r}:
        {act}
        raise DeviceUnfit(gpu + " was quarantined: it said so")
    request = VerifyRequest.model_validate(message["request"])
    verdict = Verification(
        status=Status.CRASH,
        reason="seen on " + gpu + " as " + request.device,
        problem_id=request.problem.id,
        problem_sha256=request.problem.sha256,
        candidate_sha256="",
        settings=request.settings,
        verifier="",
        created="",
    )
    return {{"verification": verdict.model_dump(mode="json")}}

room._answer = answer
sys.argv = [sys.argv[0], *sys.argv[-2:]]  # without -m kernelproof.verifier.referee
room.main()
"""


def verdict(engine: Engine) -> Verification:
    """What the engine makes of a candidate that needs no build."""
    return engine.verify(SOURCE, open_suite().find("level1/1"), SETTINGS)
