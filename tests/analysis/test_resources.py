"""What ptxas says is read, and found again under the name that a profiler gives the kernel."""

from __future__ import annotations

import pytest

from kernelproof.analysis import names
from kernelproof.analysis.resources import Resources, match, resources
from kernelproof.types import Build, BuildState

SAID = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN2my5plainEPf' for 'sm_90'
ptxas info    : Function properties for _ZN2my5plainEPf
    1024 bytes stack frame, 16 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 110 registers, used 0 barriers, 1024 bytes cumulative stack size
ptxas info    : Compiling entry function '_ZN36_GLOBAL__N__3c193e71_4_a_cu_b633d8de5innerILi4ELb1EfEEvPT1_' for 'sm_90'
ptxas info    : Function properties for _ZN36_GLOBAL__N__3c193e71_4_a_cu_b633d8de5innerILi4ELb1EfEEvPT1_
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 128 bytes smem
ptxas info    : Compiling entry function '_Z4softILi4EEvPKfl' for 'sm_90'
ptxas info    : Function properties for _Z4softILi4EEvPKfl
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 4 registers, used 0 barriers
ptxas info    : Compiling entry function '_Z4softILi1EEvPKfl' for 'sm_90'
ptxas info    : Function properties for _Z6helperPf
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Function properties for _Z4softILi1EEvPKfl
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 5 registers, 256 bytes smem, 380 bytes cmem[0]
"""  # noqa: E501


def built(log: str, state: BuildState = BuildState.OK) -> Build:
    return Build(key="k", state=state, name="ext", log=log)


def test_registers_memory_and_spills_are_read() -> None:
    found = {one.name: one for one in resources([built(SAID), built(SAID)])}
    assert list(found) == ["plain", "inner<4, true, float>", "soft<4>", "soft<1>"]
    plain = found["plain"]
    assert (plain.registers, plain.stack_bytes, plain.spill_bytes, plain.shared_bytes) == (110, 1024, 16, 0)
    assert found["inner<4, true, float>"].shared_bytes == 128
    one = found["soft<1>"]
    assert (one.registers, one.shared_bytes, one.spill_bytes) == (5, 256, 0), (
        "the helper's spills are not its"
    )


def test_a_build_that_failed_says_nothing_of_its_kernels() -> None:
    assert resources([built(SAID, BuildState.ERROR)]) == ()


@pytest.mark.parametrize(
    ("profiled", "registers"),
    [
        ("my::plain(float*)", 110),
        ("void (anonymous namespace)::inner<4, true, float>(float*)", 10),
        ("void (anonymous namespace)::inner<(int)4, (bool)1, float>(float*)", 10),
        ("void soft<4>(float const*, long)", 4),
        ("void soft<1>(float const*, long)", 5),
        ("void soft<2>(float const*, long)", None),
        ("void at::native::reduce_kernel<512, 1>(float)", None),
        ("", None),
        ("<><(((", None),
    ],
)
def test_the_profiler_s_name_finds_the_kernel(profiled: str, registers: int | None) -> None:
    found = match(profiled, resources([built(SAID)]))
    assert (found.registers if found else None) == registers


def test_template_arguments_that_cannot_be_read_leave_the_name() -> None:
    only = Resources(name="walk", registers=9, shared_bytes=0, stack_bytes=0, spill_bytes=0)
    assert names.of_mangled("_Z4walkIN2my4ListEEvT_") == only.name
    assert match("void walk<my::List>(my::List)", [only]) == only


@pytest.mark.parametrize("name", ["kernel", "_Z", "_ZN", "_Z999x", "_Z4softI", "_Z4softILi4", "_ZN1aI"])
def test_a_name_that_cannot_be_read_is_kept_or_cut(name: str) -> None:
    assert names.of_mangled(name)
