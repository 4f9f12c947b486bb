"""Whose a kernel is that was compiled at its first call: by its name, and by the file it was written in."""

from __future__ import annotations

from typing import Any

import pytest

from kernelproof.backends import backend
from kernelproof.types import Origin
from kernelproof.verifier.referee.provenance.origins import evidence, origin
from kernelproof.verifier.referee.provenance.reports import read, read_report

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


TILES = "import tilelang\n@tilelang.jit\ndef outer(n):\n  @T.prim_func\n  def main(x): pass\n  return main\n"


@pytest.mark.parametrize(
    ("source", "name", "own"),
    [
        (TILES, "main_kernel", True),
        (TILES, "main_kernel_1", True),
        (TILES, "outer_kernel", True),
        (TILES, "mainly_kernel", False),
        (TILES, "_kernel", False),
        (TILES.replace("def main(x): pass", "main = imported"), "main_kernel", False),
        (TILES.replace("import tilelang", "").replace("@tilelang.jit", ""), "main_kernel", False),
    ],
)
def test_a_name_that_the_compiler_makes_is_taken_back_to_a_function_of_the_source(
    source: str, name: str, own: bool
) -> None:
    """A word of that name is not enough: the source defines such a function."""
    first = backend("tilelang").first_call
    assert first is not None
    whose = origin(name, evidence([], source, first.written_name))
    assert whose is (Origin.JIT if own else Origin.UNKNOWN)
    assert origin(name, evidence([], source)) is Origin.UNKNOWN


def test_a_function_of_an_installed_package_is_no_own_one_though_the_source_has_one_of_that_name() -> None:
    first = backend("tilelang").first_call
    assert first is not None
    for file, whose in ((PACKAGE, Origin.LIBRARY), (OWN, Origin.JIT), ("", Origin.JIT)):
        report: dict[str, Any] = {"trouble": "", "host": [], "device": [["kernel", "main_kernel", 1, 0.5]]}
        report["made"] = [["main_kernel", file]]
        found = read_report({"profile": report}, [], evidence([], TILES, first.written_name))
        assert [launch.origin for launch in found.kernels.launches] == [whose]
