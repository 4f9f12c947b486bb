"""Whose a kernel is that was compiled at its first call: by its name, and by the file it was written in."""

from __future__ import annotations

from typing import Any

import pytest

from kernelproof.referee.provenance.reports import read
from kernelproof.types import Origin

SOURCE = "import triton\n@triton.jit\ndef relu_kernel(x): pass\ndef triton_poi_fused_relu_0(x): pass\n"
OWN = "/tmp/scratch/candidate.py"
INDUCTOR = "/tmp/scratch/torchinductor_candidate/ab/cabcdef.py"
PACKAGE = "/usr/lib/python3/site-packages/liger_kernel/ops/relu.py"


def origins(made: list[list[str]], *names: str) -> list[Origin]:
    rows = [["kernel", name, 1, 0.5] for name in names]
    report: dict[str, Any] = {"trouble": "", "host": [], "device": rows, "made": made}
    return [launch.origin for launch in read({"profile": report}, [], SOURCE).launches]


@pytest.mark.parametrize(
    ("made", "name", "whose"),
    [
        ([["relu_kernel", OWN]], "relu_kernel", Origin.JIT),
        ([], "relu_kernel", Origin.JIT),
        ([["triton_poi_fused_relu_0", INDUCTOR]], "triton_poi_fused_relu_0", Origin.INDUCTOR),
        ([["triton_poi_fused_relu_0", OWN]], "triton_poi_fused_relu_0", Origin.JIT),
        (
            [["triton_poi_fused_relu_0", INDUCTOR], ["triton_poi_fused_relu_0", OWN]],
            "triton_poi_fused_relu_0",
            Origin.INDUCTOR,
        ),
        ([["relu_kernel", PACKAGE]], "relu_kernel", Origin.LIBRARY),
        ([["other_kernel", OWN]], "other_kernel", Origin.UNKNOWN),
    ],
)
def test_a_kernel_is_of_the_file_that_it_was_written_in(
    made: list[list[str]], name: str, whose: Origin
) -> None:
    assert origins(made, name) == [whose]


def test_interpreted_kernels_count_by_the_same_names() -> None:
    report = {"trouble": "", "host": [], "interpreted": [["relu_kernel", 3], ["other", 1]]}
    seen = read({"profile": report}, [], SOURCE).launches
    assert [(each.name, each.origin, each.count) for each in seen] == [
        ("relu_kernel", Origin.JIT, 3),
        ("other", Origin.UNKNOWN, 1),
    ]


@pytest.mark.parametrize(
    "broken",
    [
        {"made": 3},
        {"made": [["a"]]},
        {"made": [["a", 3]]},
        {"made": [["a", "b" * 201]]},
        {"made": [["a", "b"]] * 4097},
        {"interpreted": {}},
        {"interpreted": [["a", "b"]]},
        {"interpreted": [["a", 0]]},
        {"interpreted": [["a", 1]] * 257},
    ],
)
def test_nonsense_is_trouble(broken: dict[str, Any]) -> None:
    report = {"trouble": "", "host": [], **broken}
    assert read({"profile": report}, [], SOURCE).trouble.startswith("the report is malformed")
