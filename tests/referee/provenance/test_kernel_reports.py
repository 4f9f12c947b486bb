"""What a contestant says of the kernels that ran: read, bounded, and attributed by names."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.backends import backend
from kernelproof.types import Build, BuildState, Kernels, Launch, Origin
from kernelproof.verifier.contestant.profiling import (
    BY_TORCH,
    MAX_ENTRIES,
    MAX_KERNELS,
    MAX_NAME,
    NO_KERNELS,
    Dispatched,
    Span,
    Watched,
    allocation,
    attributed,
    busy,
    launch_shape,
)
from kernelproof.verifier.referee.provenance import reports
from kernelproof.verifier.referee.provenance.kernels import lacking, library_compute
from kernelproof.verifier.referee.provenance.origins import Evidence, evidence, origin
from kernelproof.verifier.referee.provenance.reports import read_report


def build(library: Path, name: str = "own") -> Build:
    return Build(key="0" * 64, state=BuildState.OK, name=name, library=str(library))


def read(reply: dict[str, Any], builds: list[Build], source: str = "") -> Kernels:
    return read_report(reply, builds, evidence(builds, source)).kernels


IMAGE = (
    b"\x7fELF\0_Z11relu_kernelPKfPfl\0_ZN2my5scaleIfEEvPT_\0_ZN3cub17DeviceReduceOfOneE\0plain_kernel\0"
    b"_ZN2at6native13reduce_kernelILi512EEEv\0_Z17ampere_like_thingPf\0_ZN12_GLOBAL__N_14tileEPf\0"
)


NAMED: dict[Origin, tuple[str, ...]] = {
    Origin.OWN: (
        "relu_kernel(float const*, float*, long)",
        "void my::scale<float>(float*)",
        "plain_kernel",
        "(anonymous namespace)::tile(float*)",
        "void cub::DeviceReduceOfOne<float, (int)256>(float const*, float*)",
        "ampere_like_thing(float*)",
    ),
    Origin.UNKNOWN: (
        "kernel(float*)",
        "elu_kernel(float*)",
        "add_kernel_0d1d2d",
        "fused_softmax",
        "dot_kernel",
    ),
    Origin.INDUCTOR: ("triton_poi_fused_relu_0", "triton_tem_fused_mm_1"),
    Origin.COPY: (
        "Memcpy DtoD (Device -> Device)",
        "Memset (Device)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array>",
        "void at::native::elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIterator&)::{}",
    ),
    Origin.LIBRARY: (
        "void dot_kernel<float, 128, 0>(float*)",
        "void at::native::elementwise_kernel<at::native::(anonymous namespace)::launch_clamp_scalar>",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(float)",
        "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false>(float*)",
        "void at_cuda_detail::cub::DeviceScanKernel<int>(int*)",
        "void cub::CUB_300001_SM_900::DeviceRadixSortOnesweepKernel<int>(int*)",
        "void thrust::cuda_cub::core::_kernel_agent<int>(int*)",
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4",
        "sm90_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nchw_tilesize128x128x16",
        "ampere_sgemm_128x64_tn",
        "volta_scudnn_128x64_relu_interior_nn_v1",
        "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_nn_align1>(cutlass::Params)",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float>(float*)",
        "void splitKreduce_kernel<32, 16, int, float>(float*)",
        "void gemv2T_kernel_val<int, int, float, float>(float*)",
        "void cudnn::ops::nchwToNhwcKernel<float, float, float>(float*)",
        "void implicit_convolve_sgemm<float, float, 128, 5, 5>(float*)",
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128> >(params)",
        "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::Params)",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "void regular_fft<128u, 8u, 16u>(float*)",
        "void prime_fft<127u, EPT<2u>, 1u, (loadstore_modifier_t)2>(kernel_arguments_t)",
        "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, false, 9, cublasGemvParamsEx<int",
    ),
}


@pytest.mark.parametrize(("name", "expected"), [(name, whose) for whose in NAMED for name in NAMED[whose]])
def test_a_kernel_is_told_by_its_name_and_the_built_libraries(name: str, expected: Origin) -> None:
    assert origin(name, Evidence([b"", IMAGE])) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("i0_vectorized4_kernel", Origin.LIBRARY),
        ("relu_kernel(float const*, float*, long)", Origin.LIBRARY),
        ("Memcpy DtoD (Device -> Device)", Origin.COPY),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>", Origin.COPY),
    ],
)
def test_what_an_operator_of_torch_launches_is_not_the_candidates(name: str, expected: Origin) -> None:
    row = [BY_TORCH, name, 1, 1.0]
    (launch,) = read({"profile": {"device": [row], "host": [], "trouble": ""}}, []).launches
    assert launch.origin is expected
    assert origin(name, Evidence([IMAGE]), by_torch=True) is expected


def device_report(*lines: tuple[str, int, float]) -> dict[str, Any]:
    rows = [["kernel", name, count, ms] for name, count, ms in lines]
    return {"profile": {"device": rows, "host": [["operator", "aten.mm", 1, 0.1]], "trouble": ""}}


def test_a_gpu_report_is_read(tmp_path: Path) -> None:
    library = tmp_path / "lib.so"
    library.write_bytes(IMAGE)
    report = device_report(
        ("ampere_sgemm_128x64_tn", 2, 3.0), ("relu_kernel(float*)", 1, 1.0), ("Memset (Device)", 1, 0.0)
    )
    found = read(report, [build(library)])
    assert [launch.origin for launch in found.launches] == [Origin.LIBRARY, Origin.OWN, Origin.COPY]
    assert found.own_share == 0.25
    assert found.operators == ("aten.mm",)
    assert lacking(found, [build(library)]) == ""
    assert library_compute(found) == ("aten.mm", "ampere_sgemm_128x64_tn")


def test_only_the_longest_of_many_names_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report is the candidate's, and a name that is in no library costs a second."""
    asked: list[str] = []
    monkeypatch.setattr(reports, "holds_kernel", lambda name: asked.append(name) or name.startswith("theirs"))
    names = [
        ("mine(int)", 9.0),
        ("theirs(int)", 8.0),
        *((f"theirs_{n}(int)", 1.0 - n / 99) for n in range(99)),
    ]
    found = read(device_report(*((name, 1, ms) for name, ms in reversed(names))), [])
    assert asked == [name for name, _ in names[: reports.MOST_LOOKUPS]]
    origins = {launch.name: launch.origin for launch in found.launches}
    assert origins["mine(int)"] is Origin.UNKNOWN
    assert origins["theirs(int)"] is origins["theirs_0(int)"] is Origin.LIBRARY
    assert origins["theirs_98(int)"] is Origin.UNKNOWN


def test_a_fig_leaf_is_no_kernel() -> None:
    def timed(own_ms: float, library_ms: float, copy_ms: float = 0.0) -> Kernels:
        times = ((Origin.JIT, own_ms), (Origin.LIBRARY, library_ms), (Origin.COPY, copy_ms))
        launches = tuple(Launch(name=f"{o}_kernel", origin=o, count=1, ms=ms) for o, ms in times)
        return Kernels(launches=launches, own_share=own_ms / (own_ms + library_ms + copy_ms))

    assert "library_kernel" in lacking(timed(0.1, 99.9), [])
    assert lacking(timed(2.0, 98.0), []) == ""
    assert lacking(timed(0.1, 50.0, 49.9), []) == ""


def test_without_a_trace_it_is_enough_that_something_was_built(tmp_path: Path) -> None:
    nothing = read({"profile": {"device": None, "trouble": "no profiler here"}}, [])
    assert nothing.trouble == "no profiler here"
    assert lacking(nothing, []) != ""
    assert lacking(nothing, [build(tmp_path / "lib.so")]) == ""
    failed = build(tmp_path / "lib.so").model_copy(update={"state": BuildState.ERROR})
    assert lacking(nothing, [failed]) != ""


def test_a_trace_in_which_nothing_ran_shows_no_kernel(tmp_path: Path) -> None:
    empty = read({"profile": {"device": [], "host": [], "trouble": ""}}, [build(tmp_path / "lib.so")])
    assert lacking(empty, [build(tmp_path / "lib.so")]) != ""


def test_what_took_memory_is_counted() -> None:
    calls_made = [["cudaMallocAsync", 3], ["cudaFreeAsync", 2]]
    found = read({"profile": {"host": [], "allocations": calls_made, "trouble": ""}}, [])
    assert found.allocations == {"cudaMallocAsync": 3, "cudaFreeAsync": 2}
    assert read({"profile": {"host": [], "trouble": ""}}, []).allocations == {}


LONG = "x" * (MAX_NAME + 1)
TEXTS = ([["a", "b", 1]], [["a", "b", "x" * 2001]], [["a", "b", "c", "d"]])
MALFORMED: dict[str, list[Any]] = {
    "device": ["all", [["kernel", "a", 1]], [["kernel", "a", 1, 1.0]] * (MAX_ENTRIES + 1)],
    "spent": ["all", [["operator", "aten.mm", 0, 1.0]]],
    "elements": [{"aten.mm": 1}, [["operator", "aten.mm"]], [["operator", "aten.mm", -1]]],
    "shapes": [3, [["a", 1]], [["a", 1, 2, 3, -4]], [["a", 1, 2, 3, True]], [["a"] * 5]],
    "made": [3, [["a"]], [["a", 3]], [["a", LONG]], [["a", "b"]] * (MAX_KERNELS + 1), *TEXTS],
    "interpreted": [{}, [["a", "b"]], [["a", 0]], [["a", 1]] * (MAX_ENTRIES + 1)],
    "allocations": [
        {"cudaMalloc": 1},
        [["forgery", 1]],
        [["cudaMalloc", -1]],
        [["cudaMalloc", True]],
        [["cudaMalloc" + LONG, 1]],
        [["cudaMalloc", 1]] * (MAX_ENTRIES + 1),
    ],
    "dispatched": [
        {},
        [["aten.mm", 1, 0.1]],
        [["aten.mm", 1, 0.1, -1]],
        [["aten.mm", 1, 0.1, True]],
        [["aten.mm", 0, 0.1, 9]],
        [["aten.mm", 1, math.inf, 9]],
        [["aten.mm", 1, 0.1, 9]] * (MAX_ENTRIES + 1),
    ],
}


@pytest.mark.parametrize("place", MALFORMED)
def test_a_malformed_report_is_trouble(place: str) -> None:
    sound = {"host": [], "trouble": ""} | ({"device": []} if place == "shapes" else {})
    for value in MALFORMED[place]:
        found = read_report({"profile": sound | {place: value}}, (), Evidence())
        assert found.kernels.trouble.startswith("the report is malformed"), value
        assert found.works is None and found.kernels.allocations == {}


@pytest.mark.parametrize(
    ("event", "functions"),
    [
        ("cudaMallocAsync", ("cudaMallocAsync",)),
        ("cudaMallocFromPoolAsync_v11020", ("cudaMallocFromPoolAsync",)),
        ("cudaFreeAsync_ptsz", ("cudaFreeAsync",)),
        ("cuMemAllocAsync_ptsz", ("cuMemAllocAsync",)),
        ("cuMemCreate", ("cuMemCreate",)),
        ("cudaLaunchKernel", ()),
        ("cudaMemcpyAsync", ()),
        ("cuMemcpyDtoDAsync_v2", ()),
        ("aten::empty", ()),
    ],
)
def test_functions_that_take_memory_are_told_by_their_names(event: str, functions: tuple[str, ...]) -> None:
    assert allocation(event) == functions


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=MAX_NAME + 5),
    lambda children: (
        st.lists(children, max_size=6) | st.dictionaries(st.text(max_size=8), children, max_size=4)
    ),
    max_leaves=12,
)
ROWS = st.lists(st.tuples(JSON, JSON, JSON, JSON).map(list) | JSON, max_size=3)
REPORTS = st.fixed_dictionaries(
    {},
    optional={
        "device": ROWS | JSON,
        "host": ROWS | JSON,
        "code": JSON,
        "dispatched": ROWS | JSON,
        "interrupted": JSON,
        "allocations": JSON,
        "trouble": st.text() | JSON,
    },
)


@pytest.mark.ci
@given(reply=st.fixed_dictionaries({}, optional={"profile": REPORTS | JSON}))
def test_nonsense_is_trouble_and_no_error(reply: dict[str, Any]) -> None:
    found = read(reply, [])
    assert found.trouble or isinstance(reply["profile"], dict)
    assert len(found.launches) <= MAX_ENTRIES
    assert all(launch.ms is None or math.isfinite(launch.ms) for launch in found.launches)
    Kernels.model_validate_json(found.model_dump_json())


def test_names_cannot_move_a_cursor() -> None:
    (launch,) = read(device_report(("\x1b[31mred", 1, 1.0)), []).launches
    assert "\x1b" not in launch.name


def spans(*lines: tuple[str, int, int]) -> list[Span]:
    return [Span(name, start, end, 1) for name, start, end in lines]


def test_an_operator_of_torch_counts_with_all_that_it_calls() -> None:
    found = attributed(spans(("aten::relu", 0, 100), ("aten::clamp_min", 10, 90))).totals
    assert found == {("operator", "aten.relu"): (1, 100)}


def test_a_copy_that_was_made_to_compute_counts_without_what_it_computes() -> None:
    found = attributed(
        spans(("aten::alias_copy", 0, 100), ("aten::relu", 10, 60), ("aten::clamp_min", 20, 50))
    )
    assert found.totals == {("copy", "aten.alias_copy"): (1, 50), ("operator", "aten.relu"): (1, 50)}


def test_repeat_calls_only_what_adds_up_sizes() -> None:
    few = [("aten::add", 5, 10), ("aten::cat", 12, 20)]
    assert set(attributed(spans(("aten::repeat", 0, 100), *few)).totals) == {("copy", "aten.repeat")}
    found = attributed(spans(("aten::repeat", 0, 100), ("aten::mm", 20, 80)))
    assert ("operator", "aten.mm") in found.totals
    many = Span("aten::add", 20, 80, 1, elements=1000)
    assert ("operator", "aten.add") in attributed([*spans(("aten::repeat", 0, 100)), many]).totals


def test_an_own_operator_counts_without_the_operators_that_it_calls() -> None:
    found = attributed(
        spans(("my::op", 0, 100), ("aten::empty", 5, 10), ("aten::mm", 20, 80), ("aten::clone", 85, 95))
    )
    assert found.totals == {
        ("operator", "my.op"): (1, 30),
        ("operator", "aten.mm"): (1, 60),
        ("copy", "aten.clone"): (1, 10),
    }


def test_an_operator_that_delegates_elsewhere_counts_where_it_launches_a_kernel() -> None:
    """On a CPU `_fused_rms_norm` passes on to other operators, on a GPU it is a kernel."""
    norm = [Span("aten::rms_norm", 0, 100, 1, 6), Span("aten::_fused_rms_norm", 10, 90, 1, 7, 4096)]
    assert attributed([*norm, Span("aten::mul", 20, 30, 1, 8)]).totals == {("operator", "aten.mul"): (1, 10)}
    key = ("operator", "aten._fused_rms_norm")
    found = attributed([*norm, Span("aten::empty", 20, 30, 1, 8)], launchers={7})
    assert found == ({key: (1, 80)}, {7: key, 8: key}, {key: 4096})


def test_a_report_of_a_block_comes_to_one_call_without_the_loop() -> None:
    rows = [
        [kind, name, 16, ms] for kind, name, ms in (("kernel", "a(float*)", 3.2), ("kernel", "mask", 9.0))
    ]
    report = {
        "host": [["operator", "aten.mm", 8, 1.6]],
        "spent": [["operator", "aten.mm", 8, 4.0]],
        "elements": [["operator", "aten.mm", 800]],
        "device": rows,
        "allocations": [["cudaMalloc", 4]],
        "trouble": "",
    }
    found = read_report({"profile": report}, [], Evidence([IMAGE]), calls=8, besides={"mask"})
    (launch,) = found.kernels.launches
    assert (launch.name, launch.count, launch.ms) == ("a(float*)", 2, 0.4)
    assert found.kernels.allocations == {"cudaMalloc": 1}
    assert found.works is not None and found.works.on_device is not None
    (product,) = found.works.on_device.values()
    assert product == (1, 0.5, 100)


def test_where_the_references_kernels_are_seen_a_candidates_are_too(tmp_path: Path) -> None:
    built = [build(tmp_path / "lib.so")]
    for trouble, refused in ((NO_KERNELS, True), ("the profiler did not start: RuntimeError", False)):
        blind = read({"profile": {"device": None, "host": [], "trouble": trouble}}, built)
        assert lacking(blind, built) == ""
        assert bool(lacking(blind, built, seen_elsewhere=True)) is refused


class OnDevice(NamedTuple):
    """What `busy` asks of a kernel's event."""

    start: int
    stream: int
    launch: int

    def start_ns(self) -> int:
        return self.start

    def device_resource_id(self) -> int:
        return self.stream

    def correlation_id(self) -> int:
        return self.launch


def test_the_busiest_stream_is_busy_while_one_of_its_kernels_runs() -> None:
    first = [
        ("a", 10, 0, OnDevice(0, 7, 1)),
        ("b", 10, 0, OnDevice(5, 7, 2)),
        ("c", 5, 0, OnDevice(50, 7, 3)),
    ]
    other, ours = ("d", 18, 0, OnDevice(0, 8, 4)), ("digest", 900, 0, OnDevice(60, 7, 5))
    graph = [("e", 400, 0, OnDevice(at, 7, 9)) for at in (2000, 2400)]
    assert busy([*first, other, ours, *graph], graphs={9}) == 20
    assert busy([other], graphs=()) == 18
    assert busy([], graphs=()) == 0


def test_other_threads_have_a_nesting_of_their_own() -> None:
    found = attributed([Span("aten::mm", 0, 100, 1), Span("aten::relu", 50, 60, 2)]).totals
    assert found == {("operator", "aten.mm"): (1, 100), ("operator", "aten.relu"): (1, 10)}


@pytest.mark.parametrize(
    ("forward", "computed", "moved"),
    [
        (lambda x: x.t().reshape(-1).view(4, 4).unsqueeze(0).expand(2, 4, 4), set(), {"aten.clone"}),
        (lambda x: (x.size(), x.is_contiguous(), torch.empty_like(x), x.detach()), set(), set()),
        (lambda x: (x.half(), torch.zeros(3), torch.full((2,), 1.0), x[0, 0].item()), set(), None),
        (lambda x: torch.nn.functional.linear(x, x, x[0]), {"aten.linear"}, set()),
        (lambda x: torch.einsum("ij,jk->ik", x, x), {"aten.bmm"}, set()),
        (lambda x: torch.softmax(x, 0), {"aten.softmax"}, set()),
        (lambda x: torch.nn.functional.layer_norm(x, (4,)), {"aten.native_layer_norm"}, set()),
        (lambda x: x.clone().add_(1), {"aten.add_"}, {"aten.clone"}),
        (lambda x: torch.cat([x, x]), {"aten.cat"}, set()),
        (lambda x: torch.index_copy(x, 0, torch.arange(4), x), {"aten.index_copy"}, None),
        (lambda x: (x.repeat(2, 2), torch.view_copy(x, (16,))), set(), {"aten.repeat", "aten.view_copy"}),
        (lambda x: torch.zeros_like(x.to_sparse()).to(torch.float64), {"aten._to_sparse"}, None),
    ],
)
def test_compute_operators_are_told_from_views_and_copies(
    forward: Any, computed: set[str], moved: set[str] | None
) -> None:
    x = torch.rand(4, 4)
    with torch.no_grad(), Watched(torch.device("cpu")) as watched:
        forward(x)
    kinds = {(kind, name) for kind, name, _, _ in watched.report["host"]}
    assert {name for kind, name in kinds if kind == "operator"} == computed
    if moved is not None:
        assert {name for kind, name in kinds if kind == "copy"} == moved
    assert watched.report["trouble"] == ""


def test_watching_leaves_nothing_behind() -> None:
    def fails(x: torch.Tensor) -> None:
        raise KeyError("x")

    with pytest.raises(KeyError), Watched(torch.device("cpu")):
        fails(torch.rand(4))
    assert sys.getprofile() is None
    assert not torch.autograd._profiler_enabled()


AUTOGRAD = torch._C._autograd


def switched_off(x: torch.Tensor) -> torch.Tensor:
    AUTOGRAD._enable_record_function(False)
    return torch.relu(x)


def stopped(x: torch.Tensor) -> torch.Tensor:
    AUTOGRAD._disable_profiler()
    return torch.relu(x)


def stopped_and_started(x: torch.Tensor) -> torch.Tensor:
    AUTOGRAD._disable_profiler()
    torch.autograd.profiler.profile(use_kineto=True).__enter__()  # type: ignore[no-untyped-call]
    return torch.relu(x)


def hidden(x: torch.Tensor) -> torch.Tensor:
    AUTOGRAD._enable_record_function(False)
    y = torch.relu(x @ x)
    AUTOGRAD._enable_record_function(True)
    return y


def ranged(x: torch.Tensor) -> torch.Tensor:
    with torch.autograd.profiler.record_function("mine"):
        return torch.relu(x)


@pytest.mark.parametrize(
    ("forward", "interrupted"),
    [(switched_off, True), (stopped, True), (stopped_and_started, True), (hidden, False), (ranged, False)],
)
def test_a_record_that_is_stopped_or_switched_off_says_so(forward: Any, interrupted: bool) -> None:
    """And so it is with a record of nothing else: a machine on which no profiler works accuses nobody."""
    x = torch.ones(2, 2)
    with Watched(torch.device("cpu")) as watched:
        forward(x)
    assert watched.report["interrupted"] is interrupted
    x = torch.ones(2)
    with Watched(torch.device("cpu")) as after:
        torch.relu(x)
    assert not after.report["interrupted"]
    assert [name for _, name, *_ in after.report["host"]] == ["aten.relu"]


def test_where_no_profiler_records_nothing_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelproof.verifier.contestant.profiling._recorded", lambda recording: [])
    x = torch.ones(2)
    with Watched(torch.device("cpu")) as watched:
        torch.relu(x)
    assert watched.report["interrupted"] is False


def test_operators_that_are_hidden_from_the_record_are_dispatched_all_the_same() -> None:
    x = torch.ones(3, 3)
    with Watched(torch.device("cpu")) as watched:
        hidden(x)
    assert watched.report["host"] == []
    with torch.no_grad(), Dispatched() as seen:
        hidden(torch.ones(3, 3))
    found = read_report({"profile": watched.report | {"dispatched": seen.report}}, [], Evidence())
    assert found.kernels.operators == ("aten.mm", "aten.relu")
    assert found.works is not None
    assert {name: (done.calls, done.elements) for name, done in found.works.on_host.items()} == {
        "matrix products": (1, 18),
        "relu": (1, 9),
    }


def test_what_is_recorded_counts_as_it_is_recorded() -> None:
    x = torch.ones(5)
    with Watched(torch.device("cpu")) as watched:
        torch.relu(x)
    plain = read_report({"profile": watched.report}, [], Evidence())
    both = read_report(
        {"profile": watched.report | {"dispatched": [["aten.relu_", 3, 9.0, 99]]}}, [], Evidence()
    )
    assert both == plain


@pytest.mark.skipif(torch.cuda.is_available(), reason="it does not fail where there is a GPU")
@pytest.mark.filterwarnings("ignore:CUDA is not available")
def test_a_profiler_that_fails_is_trouble_and_not_the_candidates(tmp_path: Path) -> None:
    with Watched(torch.device("cuda")) as watched:
        assert torch.equal(torch.relu(torch.ones(2)), torch.ones(2))
    assert not torch.autograd._profiler_enabled()
    found = read({"profile": watched.report}, [])
    assert found.trouble and not found.launches
    assert lacking(found, [build(tmp_path / "lib.so")]) == ""


KINETO = (
    '"queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": 24, "registers per thread": 32, '
    '"shared memory": 4096, "blocks per SM": 0.48, "warps per SM": 3.9, "grid": [8, 2, 1], '
    '"block": [32, 4, 1], "est. achieved occupancy %": 6'
)


@pytest.mark.parametrize("said", [KINETO, f"{{{KINETO}}}", f"{KINETO},"])
def test_a_launch_s_shape_is_read(said: str) -> None:
    assert launch_shape(said) == [128, 16, 32, 4096]


@pytest.mark.parametrize(
    "said", ["", "{}", '"bytes": 12', "[1]", '"block": 3', KINETO.replace("32,", '"a",')]
)
def test_what_says_no_shape_gives_none(said: str) -> None:
    assert launch_shape(said) is None


def test_shapes_go_to_their_kernels() -> None:
    device = [["kernel", "a(float*)", 2, 0.5], ["kernel", "b(float*)", 1, 0.1]]
    profile = {"trouble": "", "host": [], "device": device, "shapes": [["a(float*)", 128, 16, 32, 4096]]}
    a, b = read({"profile": profile}, []).launches
    assert (a.threads, a.blocks, a.registers, a.shared_bytes) == (128, 16, 32, 4096)
    assert b.threads is None and b.shared_bytes is None


SOURCE = """import triton
@triton.jit
def relu_kernel(x): pass
def triton_poi_fused_relu_0(x): pass
TEXT = "    at = tl.program_id(0) * BLOCK\\n"
"""
OWN = "/tmp/scratch/candidate.py"
INDUCTOR = "/tmp/scratch/torchinductor_candidate/ab/cabcdef.py"
PACKAGE = "/usr/lib/python3/site-packages/liger_kernel/ops/relu.py"


INDUCTORS_TEXT = """@triton.jit
def relu_kernel(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    tmp0 = tl.load(in_ptr0 + (xindex), None)
"""
"""No line of it stands in the source."""


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
        ([["relu_kernel", OWN, "@triton.jit\ndef relu_kernel(x): pass\n"]], "relu_kernel", Origin.JIT),
        (
            [["relu_kernel", OWN, "def relu_kernel(x):\n    at = tl.program_id(0) * BLOCK\n"]],
            "relu_kernel",
            Origin.JIT,
        ),
        ([["relu_kernel", OWN, INDUCTORS_TEXT]], "relu_kernel", Origin.UNKNOWN),
        ([["relu_kernel", OWN, INDUCTORS_TEXT], ["relu_kernel", INDUCTOR]], "relu_kernel", Origin.INDUCTOR),
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
