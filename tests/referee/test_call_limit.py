"""How long a call may take by what the candidate's source names."""

from __future__ import annotations

import pytest

from kernelproof.verifier.referee.stages import BUILT_SECONDS, LEAST_SECONDS, least_seconds
from tests.referee.corpus import members

PLAIN = "ext = load_inline('x', cuda_sources=['__global__ void warp() {}'], functions=['f'])"


@pytest.mark.parametrize(
    "busy",
    [
        "@triton.jit",
        "torch.compile(self.layer)",
        "torch.jit.script(f)",
        "nvrtc.compile()",
        "torch.backends.cudnn.benchmark = True",
        "def autotune(): ...",
        "best = self.tuning[shape]",
    ],
)
def test_who_compiles_or_tunes_in_the_first_call_has_longer(busy: str) -> None:
    assert least_seconds("cuda", PLAIN) == BUILT_SECONDS < LEAST_SECONDS["cuda"]
    assert least_seconds("cuda", PLAIN + "\n" + busy) == LEAST_SECONDS["cuda"]
    assert least_seconds("cpu", PLAIN) == LEAST_SECONDS["cpu"]


def test_the_corpus_candidates_that_tune_themselves_are_known() -> None:
    tuned = [member for device in ("cpu", "cuda") for member in members(device) if "tuned" in member.name]
    assert tuned
    assert all(least_seconds("cuda", member.source) == LEAST_SECONDS["cuda"] for member in tuned)
