"""What own kernels replace of the reference's work in libraries, told by two traces."""

from __future__ import annotations

import pytest

from kernelproof.types import Origin
from kernelproof.verifier.contestant.profiling import BY_TORCH, passed_over
from kernelproof.verifier.referee.provenance.kernels import lacking
from kernelproof.verifier.referee.provenance.origins import Evidence
from kernelproof.verifier.referee.provenance.replaced import Kind, Replaced, Works, replaced
from kernelproof.verifier.referee.provenance.reports import Report, read_report

Line = tuple[str, int, float, int]
"""Operator, calls, milliseconds, elements."""

IMAGE = b"\0_Z3ownPf\0"
SHOWN = Evidence([IMAGE])
OWN = ("kernel", "own(float*)", 1, 0.1)
GEMM = "ampere_sgemm_128x64_tn"
RELU = "void at::native::vectorized_elementwise_kernel<4, relu>"


def on_cpu(*lines: Line) -> Works:
    report = {
        "host": [["operator", f"aten.{name}", calls, ms] for name, calls, ms, _ in lines],
        "elements": [["operator", f"aten.{name}", elements] for name, _, _, elements in lines],
        "trouble": "",
    }
    works = read_report({"profile": report}, (), SHOWN).works
    assert works is not None
    return works


def on_gpu(*lines: Line, kernels: list[tuple[str, str, int, float]]) -> Report:
    """A trace in which operators took this time on the device; on the host all of them take 0.01 ms."""
    report = {
        "host": [["operator", f"aten.{name}", calls, 0.01] for name, calls, _, _ in lines],
        "spent": [["operator", f"aten.{name}", calls, ms] for name, calls, ms, _ in lines],
        "elements": [["operator", f"aten.{name}", elements] for name, _, _, elements in lines],
        "device": [list(kernel) for kernel in kernels],
        "trouble": "",
    }
    found = read_report({"profile": report}, (), SHOWN)
    assert not found.kernels.trouble
    return found


def compared(reference: Works, candidate: Works) -> Replaced:
    found = replaced(reference, candidate)
    assert found is not None
    return found


MLP = on_cpu(("linear", 2, 9.0, 4000), ("gelu", 1, 0.6, 800), ("mul", 1, 0.4, 800))
OTHERS: list[tuple[str, Works, float, float]] = [
    ("all but the products", on_cpu(("addmm", 2, 9.3, 4000)), 0.1, 1.0),
    (
        "one of two products",
        on_cpu(("mm", 1, 4.5, 2000), ("gelu", 1, 0.7, 800), ("mul", 1, 0.4, 800)),
        0.45,
        0.0,
    ),
    ("one of the rest", on_cpu(("linear", 2, 9.0, 4000), ("gelu_", 1, 0.5, 800)), 0.04, 0.4),
    ("everything", on_cpu(), 1.0, 1.0),
]


@pytest.mark.parametrize(
    ("candidate", "share", "outside"), [each[1:] for each in OTHERS], ids=[e[0] for e in OTHERS]
)
def test_what_no_library_does_any_more_is_replaced(candidate: Works, share: float, outside: float) -> None:
    found = compared(MLP, candidate)
    assert (found.share, found.outside_products) == pytest.approx((share, outside))
    assert found.kinds and not found.nothing


@pytest.mark.parametrize(
    "candidate",
    [
        pytest.param(MLP, id="the same"),
        pytest.param(
            on_cpu(("mm", 2, 5.0, 4000), ("gelu", 1, 0.1, 800), ("mul", 2, 0.1, 900)), id="faster today"
        ),
    ],
)
def test_where_libraries_do_all_that_they_did_nothing_is_replaced(candidate: Works) -> None:
    found = compared(MLP, candidate)
    assert found.nothing
    assert (found.share, found.outside_products) == (0, 0)


def test_products_that_one_larger_product_replaced_are_still_done_by_a_library() -> None:
    heads = on_cpu(("linear", 3, 9.0, 6000), ("softmax", 1, 1.0, 500))
    merged = on_cpu(("mm", 1, 9.0, 4000), ("softmax", 1, 1.0, 500))
    assert compared(heads, merged).nothing


def test_a_last_sum_over_a_few_partial_ones_is_not_the_reference_s() -> None:
    found = compared(on_cpu(("sum", 1, 5.0, 1_000_000)), on_cpu(("sum", 1, 0.1, 1_000)))
    assert found.share == pytest.approx(0.999)
    assert not found.nothing


HONEST: list[tuple[str, Works, Works, set[Kind]]] = [
    (
        "partial products are added, which is no GELU",
        on_cpu(("linear", 1, 9.0, 4000), ("gelu", 1, 0.6, 800), ("mul", 1, 0.4, 800)),
        on_cpu(("mm", 2, 9.9, 3990), ("add", 1, 1.2, 1600)),
        {Kind.FUNCTION},
    ),
    (
        "one of 24 GELUs",
        on_cpu(("linear", 24, 90.0, 40000), ("gelu", 24, 6.0, 8000)),
        on_cpu(("linear", 24, 90.0, 40000), ("gelu", 23, 5.0, 7667), ("add", 1, 3.0, 1600)),
        {Kind.FUNCTION},
    ),
    (
        "the sums of a norm, whose arithmetic torch does",
        on_cpu(("layer_norm", 1, 1.0, 1000)),
        on_cpu(("sub", 1, 1.0, 1030), ("mul", 2, 2.0, 2030), ("add", 1, 1.0, 1030)),
        {Kind.SUM},
    ),
    (
        "a function of rows, for whole rows",
        on_cpu(("softmax", 1, 1.0, 1000)),
        on_cpu(("exp", 1, 0.1, 30), ("div", 1, 1.2, 1030), ("sum", 1, 1.0, 1000)),
        {Kind.FUNCTION},
    ),
    (
        "the result of a norm, whose mean and variance torch makes",
        on_cpu(("group_norm", 1, 1.0, 1000)),
        on_cpu(("mean", 1, 0.5, 1000), ("var", 1, 0.9, 1000)),
        {Kind.ARITHMETIC},
    ),
    (
        "the result of a batch norm, whose statistics torch makes",
        on_cpu(("batch_norm", 1, 1.0, 1040)),
        on_cpu(("batch_norm_stats", 1, 0.9, 1000)),
        {Kind.ARITHMETIC},
    ),
    (
        "and a function after it, which is no root of a sum",
        on_cpu(("batch_norm", 1, 1.0, 1040), ("hardtanh", 1, 0.5, 1000)),
        on_cpu(("std_mean", 1, 0.9, 1000)),
        {Kind.ARITHMETIC, Kind.COMPARISON},
    ),
    (
        "the last product of a norm",
        on_cpu(("layer_norm", 1, 1.0, 1000)),
        on_cpu(("var_mean", 1, 0.5, 1000), ("sub", 1, 0.5, 1030)),
        {Kind.ARITHMETIC},
    ),
    (
        "the quotient, by a norm whose squares torch sums",
        on_cpu(("linalg_vector_norm", 1, 0.5, 1000), ("div", 1, 0.5, 1030)),
        on_cpu(("mul", 1, 0.5, 1000), ("sum", 1, 0.5, 1000)),
        {Kind.ARITHMETIC},
    ),
    (
        "a product, with terms that torch sums",
        on_cpu(("matmul", 1, 9.0, 800)),
        on_cpu(("sum", 1, 1.0, 1600), ("add", 1, 0.3, 900)),
        {Kind.PRODUCT},
    ),
    (
        "a sort of keys that torch makes of numbers",
        on_cpu(("sort", 1, 1.0, 1000)),
        on_cpu(("where", 2, 0.5, 6000), ("bitwise_not", 2, 0.2, 2000), ("lt", 2, 0.2, 2000)),
        {Kind.ORDER},
    ),
    (
        "a small bag of rows whose numbers torch wraps around",
        on_cpu(("embedding_bag", 1, 0.03, 18000)),
        on_cpu(("lt", 1, 0.02, 2000), ("where", 1, 0.05, 6000), ("add", 1, 0.03, 2000)),
        {Kind.SUM, Kind.REARRANGING},
    ),
    (
        "an `exp` of what torch clamps",
        on_cpu(("exp", 1, 1.0, 100)),
        on_cpu(("clamp", 1, 1.0, 100)),
        {Kind.FUNCTION},
    ),
    (
        "a maximum over windows, of what torch makes a curve of in other words",
        on_cpu(("silu", 1, 1.0, 1000), ("max_pool2d", 1, 1.0, 1000)),
        on_cpu(("sigmoid", 1, 0.5, 1000), ("mul", 1, 0.5, 1000)),
        {Kind.COMPARISON},
    ),
    (
        "a relu of what torch sorts in other words",
        on_cpu(("sort", 1, 1.0, 1000), ("relu", 1, 1.0, 1000)),
        on_cpu(("topk", 1, 1.0, 1000)),
        {Kind.COMPARISON},
    ),
]


@pytest.mark.parametrize(
    ("reference", "candidate", "kinds"), [each[1:] for each in HONEST], ids=[e[0] for e in HONEST]
)
def test_a_kind_of_work_that_libraries_do_less_of_is_replaced(
    reference: Works, candidate: Works, kinds: set[Kind]
) -> None:
    assert set(compared(reference, candidate).kinds) == kinds


SPELLED: list[tuple[str, list[Line], list[Line]]] = [
    ("relu", [("relu", 1, 1.0, 100)], [("clamp_min", 1, 0.7, 100)]),
    ("relu by a mask", [("relu", 1, 1.0, 100)], [("gt", 1, 0.3, 100), ("mul", 1, 0.4, 100)]),
    ("relu by abs", [("relu", 1, 1.0, 100)], [("abs", 1, 0.1, 100), ("add", 1, 0.1, 100)]),
    (
        "gelu by erf",
        [("gelu", 1, 1.0, 100)],
        [("mul", 3, 0.2, 300), ("erf", 1, 0.1, 100), ("add", 1, 0, 100)],
    ),
    ("silu by sigmoid", [("silu", 1, 1.0, 100)], [("sigmoid", 1, 0.3, 100), ("mul", 1, 0.3, 100)]),
    ("a square", [("pow", 1, 1.0, 100)], [("mul", 1, 0.3, 100)]),
    ("a norm by a product with itself", [("norm", 1, 1.0, 100)], [("dot", 1, 0.2, 200)]),
    ("a norm of magnitudes", [("norm", 1, 1.0, 100)], [("abs", 1, 0.1, 100), ("sum", 1, 0.1, 100)]),
    ("an error by a distance", [("mse_loss", 1, 1.0, 100)], [("dist", 1, 0.3, 100)]),
    ("a norm by who knows what", [("layer_norm", 1, 1.0, 120)], [("new_norm", 1, 0.3, 120)]),
    (
        "a norm in steps",
        [("layer_norm", 1, 1.0, 120)],
        [("mean", 2, 0.1, 200), ("sub", 1, 0.1, 110), ("pow", 1, 0, 100), ("mul", 2, 0.1, 220)],
    ),
    ("a batch norm", [("batch_norm", 1, 1.0, 120)], [("sub", 1, 0.1, 110), ("mul", 2, 0.1, 220)]),
    ("a batch norm by one operator", [("batch_norm", 1, 1.0, 120)], [("addcmul", 1, 0.3, 120)]),
    (
        "a norm by its variance",
        [("group_norm", 1, 1.0, 120)],
        [("var_mean", 1, 0.3, 115), ("sub", 1, 0.2, 110), ("div", 1, 0.2, 110)],
    ),
    ("a layer norm by a batch norm", [("layer_norm", 1, 1.0, 120)], [("batch_norm", 1, 1.0, 110)]),
    ("softmax", [("softmax", 1, 1.0, 100)], [("exp", 1, 0.1, 100), ("sum", 1, 0, 100), ("div", 1, 0, 110)]),
    ("a sum by a product", [("sum", 1, 1.0, 100)], [("mv", 1, 0.1, 110)]),
    ("relu by a root", [("relu", 1, 1.0, 100)], [("sqrt", 1, 0.3, 100), ("mul", 1, 0.1, 100)]),
    (
        "silu and a maximum",
        [("silu", 1, 1.0, 100), ("max_pool2d", 1, 1.0, 100)],
        [("sigmoid", 1, 0.3, 100), ("mul", 1, 0.3, 100), ("amax", 1, 0.3, 100)],
    ),
    ("a maximum by a sort", [("amax", 1, 1.0, 100)], [("sort", 1, 3.0, 100)]),
    ("a median by a sort", [("median", 1, 1.0, 100)], [("sort", 1, 3.0, 100)]),
    ("pooling", [("max_pool2d", 1, 1.0, 100)], [("amax", 1, 0.5, 225)]),
    ("mean pooling", [("avg_pool2d", 1, 1.0, 100)], [("conv2d", 1, 0.5, 120)]),
    ("a convolution by unfolding", [("conv2d", 1, 9.0, 150)], [("im2col", 1, 1, 100), ("bmm", 1, 7.0, 950)]),
    (
        "attention",
        [("scaled_dot_product_attention", 1, 5.0, 90)],
        [("bmm", 2, 4.0, 120), ("softmax", 1, 1, 60)],
    ),
    (
        "a bag of rows",
        [("embedding_bag", 1, 1.0, 180)],
        [("embedding", 1, 0.3, 180), ("sum", 1, 0.2, 300)],
    ),
    ("gather", [("index_select", 1, 1.0, 100)], [("gather", 1, 1.0, 200)]),
]


@pytest.mark.parametrize(("reference", "others"), [each[1:] for each in SPELLED], ids=[e[0] for e in SPELLED])
def test_what_is_spelled_in_another_way_is_not_replaced_however_long_it_takes(
    reference: list[Line], others: list[Line]
) -> None:
    product = ("linear", 1, 9.0, 4000)
    found = compared(on_cpu(product, *reference), on_cpu(product, *others))
    assert found.gone and not found.kinds


def test_tensors_of_one_shape_count_once_but_for_products_and_maxima() -> None:
    assert passed_over("aten.mul", [(4, 4), (4, 4)]) == passed_over("aten.pow", [(4, 4)]) == 16
    assert passed_over("aten.mul", [(4, 4), (4,)]) == 20
    assert passed_over("aten.hann_window", []) == 0
    assert passed_over("aten.mul", [(40, 1), (50,)]) == passed_over("aten.mul", [(40, 50)]) == 2000
    assert passed_over("aten.embedding", [(5000, 1), (40,)]) == 5040
    assert passed_over("aten.searchsorted", [(50,), (40, 1)]) == 90
    assert passed_over("aten.mm", [(4, 4), (4, 4)]) == passed_over("aten.maximum", [(4, 4), (4, 4)]) == 32
    quarters = 3 * passed_over("aten.maximum", [(400,), (400,)])
    pooled = compared(on_cpu(("max_pool2d", 1, 1.0, 1600)), on_cpu(("maximum", 3, 0.3, quarters)))
    assert pooled.gone and not pooled.kinds


@pytest.mark.parametrize(
    ("product", "fused"), [("linear", "_addmm_activation"), ("conv2d", "cudnn_convolution_relu")]
)
def test_a_product_of_a_library_that_does_the_function_too_replaces_nothing(product: str, fused: str) -> None:
    reference = on_cpu((product, 1, 9.0, 4000), ("relu", 1, 1.0, 800))
    assert not compared(reference, on_cpu((fused, 1, 9.2, 4000))).kinds
    assert compared(reference, on_cpu((product, 1, 9.2, 4000))).kinds == (Kind.COMPARISON,)


def test_an_unknown_operator_may_do_anything_and_its_time_counts() -> None:
    fft = on_cpu(("fft_rfft", 1, 1.0, 100))
    assert not compared(on_cpu(("relu", 1, 1.0, 100)), fft).kinds
    assert not compared(fft, on_cpu(("fft_fft", 1, 0.95, 10))).kinds
    scaled = compared(fft, on_cpu(("mul", 1, 0.95, 100)))
    assert scaled.kinds and not scaled.by_fused
    assert compared(fft, on_cpu(("mul", 1, 0.5, 1000))).by_fused
    assert compared(fft, on_cpu(("mul", 1, 2.0, 10))).by_fused


@pytest.mark.parametrize(
    ("order", "others"),
    [("topk", [("max", 1, 0.5, 1000)]), ("bucketize", [("gt", 1, 0.5, 1000), ("sum", 1, 0.5, 1000)])],
)
def test_a_comparison_that_stands_for_an_order_leaves_nothing_to_a_trifle(
    order: str, others: list[Line]
) -> None:
    found = compared(on_cpu((order, 1, 1.0, 1000)), on_cpu(*others))
    assert (found.kinds, found.by_fused) == ((Kind.ORDER,), ())


def test_a_table_made_of_no_tensor_makes_up_for_no_work_on_tensors() -> None:
    found = compared(on_cpu(("relu", 1, 0.1, 1000)), on_cpu(("hann_window", 1, 0.3, 0)))
    assert found.kinds == found.by_fused == (Kind.COMPARISON,)


def test_a_spelling_does_not_pass_however_long_an_own_kernel_spins() -> None:
    candidate = on_gpu(
        ("addmm", 1, 9.9, 4000),
        ("clamp_min", 1, 0.1, 800),
        kernels=[(BY_TORCH, GEMM, 1, 9.9), (BY_TORCH, RELU, 1, 0.1), ("kernel", "own(float*)", 1, 30.0)],
    )
    assert "in place of relu libraries do other work of the same kind" in verdict(candidate)


def test_a_reference_without_operators_is_no_measure() -> None:
    assert replaced(on_cpu(), MLP) is None


def reference_on_gpu() -> Works:
    kernels = [(BY_TORCH, GEMM, 1, 9.9), (BY_TORCH, RELU, 1, 0.1)]
    works = on_gpu(("addmm", 1, 9.9, 4000), ("relu", 1, 0.1, 800), kernels=kernels).works
    assert works is not None
    return works


def verdict(candidate: Report) -> str:
    assert candidate.works is not None
    found = replaced(reference_on_gpu(), candidate.works)
    return lacking(candidate.kernels, (), SHOWN, found)


def test_a_small_epilogue_of_its_own_beside_the_librarys_product_is_enough() -> None:
    """0.1 ms of 10: the share of the time alone would say that it is a fig leaf."""
    for own_ms in (0.01, 0.05, 0.09, 0.11, 0.2):
        candidate = on_gpu(
            ("mm", 1, 9.9, 4000),
            kernels=[(BY_TORCH, GEMM, 1, 9.9), ("kernel", "own(float*)", 1, own_ms)],
        )
        assert verdict(candidate) == ""


@pytest.mark.parametrize("own_ms", [0.01, 0.2, 10.0])
def test_a_decoy_is_no_kernel_however_long_it_takes(own_ms: float) -> None:
    candidate = on_gpu(
        ("addmm", 1, 9.9, 4000),
        ("relu", 1, 0.1, 800),
        kernels=[(BY_TORCH, GEMM, 1, 9.9), (BY_TORCH, RELU, 1, 0.1), ("kernel", "own(float*)", 1, own_ms)],
    )
    assert "replace nothing: all that the reference computes (matrix products, relu)" in verdict(candidate)


def test_a_library_that_is_called_without_torch_still_does_its_product() -> None:
    """Straight from the extension, by cuBLAS: no operator of torch tells of it."""
    product = on_gpu(kernels=[("kernel", GEMM, 1, 9.9), OWN])
    assert verdict(product) == ""  # the epilogue is its own
    assert product.works is not None
    found = compared(reference_on_gpu(), product.works)
    assert (found.share, found.outside_products) == pytest.approx((0.01, 1.0))


def test_a_graph_of_the_references_own_kernels_replaces_nothing() -> None:
    candidate = on_gpu(kernels=[("kernel", GEMM, 1, 9.0), ("kernel", RELU, 1, 0.09), OWN])
    assert "replace nothing" in verdict(candidate)


def test_own_transforms_around_another_operator_are_enough_where_they_take_their_time() -> None:
    works = on_gpu(("conv2d", 1, 5.0, 900), kernels=[(BY_TORCH, "sm80_xmma_fprop", 1, 5.0)]).works
    assert works is not None

    def around(own_ms: float) -> str:
        candidate = on_gpu(
            ("bmm", 1, 5.0, 900),
            kernels=[(BY_TORCH, GEMM, 1, 5.0), ("kernel", "own(float*)", 1, own_ms)],
        )
        assert candidate.works is not None
        return lacking(candidate.kernels, (), SHOWN, replaced(works, candidate.works))

    assert around(1.0) == ""
    assert "in place of convolutions libraries do other work of the same kind" in around(0.1)


def test_what_nothing_shows_to_be_its_own_counts_as_a_librarys_work() -> None:
    candidate = on_gpu(kernels=[("kernel", "reduction_prod_kernel", 1, 9.0)])
    assert candidate.kernels.launches[0].origin is Origin.UNKNOWN
    assert "no kernel of its own ran; what ran is reduction_prod_kernel" in verdict(candidate)


N = 16_000_000
GELU = [("pow", 1, 0.04, N), ("mul", 4, 0.2, 4 * N), ("add", 2, 0.1, 2 * N), ("tanh", 1, 0.04, N)]
SPELLED: dict[str, tuple[list[Line], list[Line]]] = {
    "gelu": (GELU, [("gelu", 1, 0.03, N)]),
    "layer_norm": (
        [
            *(("mean", 2, 0.05, 2 * N), ("sub", 2, 0.1, 2 * N), ("pow", 1, 0.04, N), ("add", 1, 0.01, 4000)),
            *(("sqrt", 1, 0.01, 4000), ("div", 1, 0.05, N), ("mul", 1, 0.05, N)),
        ],
        [("native_layer_norm", 1, 0.05, N)],
    ),
    "rms_norm": (
        [
            *(("pow", 1, 0.04, N), ("mean", 1, 0.03, N), ("add", 1, 0.01, 4000), ("rsqrt", 1, 0.01, 4000)),
            ("mul", 2, 0.1, 2 * N),
        ],
        [("_fused_rms_norm", 1, 0.05, N)],
    ),
    "vector_norm": (
        [("pow", 1, 0.05, N), ("mean", 1, 0.03, N), ("sqrt", 1, 0.01, 4000)],
        [("linalg_vector_norm", 1, 0.03, N)],
    ),
}


@pytest.mark.parametrize("name", SPELLED)
@pytest.mark.parametrize(("own_ms", "passed"), [(0.002, False), (0.03, True)])
def test_a_fused_operator_of_a_library_beside_a_trifle_replaces_nothing(
    name: str, own_ms: float, passed: bool
) -> None:
    """A spelled-out function by the one operator of torch that does it all, and a kernel of one thread. An
    own kernel that takes as long as the library does part of the work."""
    spelled, fused = SPELLED[name]
    reference = on_gpu(*spelled, kernels=[(BY_TORCH, "at::native::spelled", 9, 0.3)])
    candidate = on_gpu(
        *fused,
        kernels=[(BY_TORCH, "at::native::fused", 1, fused[0][2]), ("kernel", "own(float*)", 1, own_ms)],
    )
    assert reference.works is not None and candidate.works is not None
    found = replaced(reference.works, candidate.works)
    assert (lacking(candidate.kernels, (), SHOWN, found) == "") is passed or name == "vector_norm"
    if not passed:
        assert "libraries do other work of the same kind" in lacking(candidate.kernels, (), SHOWN, found)


GELU_KERNEL = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>"


@pytest.mark.parametrize(("own_ms", "passed"), [(0.002, False), (0.03, True)])
@pytest.mark.parametrize("kernel", [GELU_KERNEL, "kernel_that_no_list_has<4>(float*)"])
def test_a_kernel_of_a_library_that_no_operator_is_recorded_for_may_do_it_all(
    kernel: str, own_ms: float, passed: bool
) -> None:
    """torch was told to record no operators. What the kernel does is not known; it takes as long as a pass
    over the elements, the own one next to nothing."""
    reference = on_gpu(*GELU, kernels=[(BY_TORCH, "at::native::spelled", 8, 0.38)])
    candidate = on_gpu(kernels=[("kernel", kernel, 1, 0.03), ("kernel", "own(float*)", 1, own_ms)])
    assert reference.works is not None and candidate.works is not None
    found = replaced(reference.works, candidate.works)
    assert (lacking(candidate.kernels, (), SHOWN, found) == "") is passed


def test_a_kernel_that_the_reference_runs_too_is_known_though_a_graph_launches_it() -> None:
    """No operator is recorded for the kernels of a graph; the own one is small beside them."""
    norm = "void at::native::vectorized_layer_norm_kernel<float>"
    reference = on_gpu(
        ("native_layer_norm", 1, 4.0, N),
        ("tanh", 1, 5.0, N),
        kernels=[(BY_TORCH, norm, 1, 4.0), (BY_TORCH, "at::native::tanh", 1, 5.0)],
    )
    for kernel, passed in ((norm, True), (norm.replace("layer", "other"), False)):
        candidate = on_gpu(kernels=[("kernel", kernel, 1, 4.0), ("kernel", "own(float*)", 1, 0.3)])
        assert reference.works is not None and candidate.works is not None
        found = replaced(reference.works, candidate.works)
        assert (lacking(candidate.kernels, (), SHOWN, found) == "") is passed


@pytest.mark.parametrize(("own_ms", "passed"), [(0.002, False), (0.5, True)])
def test_copies_stand_in_for_cat_though_its_elements_are_not_recorded(own_ms: float, passed: bool) -> None:
    """The profiler tells no sizes of lists of tensors."""
    kernels = [(BY_TORCH, "at::native::CatArrayBatchedCopy", 1, 1.0), (BY_TORCH, RELU, 1, 1.0)]
    reference = on_gpu(("cat", 1, 1.0, 0), ("relu", 1, 1.0, N), kernels=kernels)
    copied = ("copy", "aten.copy_", 2, 0.8)
    report = {
        "host": [list(copied), ["operator", "aten.relu_", 1, 0.01]],
        "spent": [list(copied), ["operator", "aten.relu_", 1, 1.0]],
        "elements": [["copy", "aten.copy_", 2 * N], ["operator", "aten.relu_", N]],
        "device": [[BY_TORCH, RELU, 1, 1.0], ["kernel", "own(float*)", 1, own_ms]],
        "trouble": "",
    }
    candidate = read_report({"profile": report}, (), SHOWN)
    assert reference.works is not None and candidate.works is not None
    found = replaced(reference.works, candidate.works)
    assert (lacking(candidate.kernels, (), SHOWN, found) == "") is passed


def test_a_library_that_did_the_norm_leaves_the_function_to_an_own_kernel() -> None:
    """Small beside the product, but not beside the norm."""
    norm, gemm = SPELLED["layer_norm"], (BY_TORCH, GEMM, 1, 9.0)
    product = ("mm", 1, 9.0, 4000)
    reference = on_gpu(product, *norm[0], *GELU, kernels=[gemm, (BY_TORCH, "at::native::spelled", 9, 0.6)])
    candidate = on_gpu(
        product,
        *norm[1],
        kernels=[gemm, (BY_TORCH, "at::native::norm", 1, 0.05), ("kernel", "own(float*)", 1, 0.03)],
    )
    assert reference.works is not None and candidate.works is not None
    assert lacking(candidate.kernels, (), SHOWN, replaced(reference.works, candidate.works)) == ""
