"""Whose kernels did the work: verdicts on real extensions on the CPU, and kernels told by their names."""

from __future__ import annotations

from typing import Any

import pytest

from kernelproof.types import CheckOutcome, Kernels, Origin, Status
from tests.referee.court import Court
from tests.referee.problems import text, written

pytestmark = pytest.mark.ci

PROBLEM = text("return torch.relu(x @ w)", "torch.randn(33, 64), torch.randn(64, 65)", names="x, w")
HEAD = """
import functools

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

"""

PLAIN = (
    HEAD
    + '''
SOURCE = r"""
#include <pybind11/pybind11.h>
#include <algorithm>
#include <cstdint>
#include <vector>

extern "C" void rectify(const float* x, float* y, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) y[i] = std::max(x[i], 0.0f);
}

using Size = std::int64_t;

extern "C" void multiply(const float* a, const float* b, float* c, Size n, Size k, Size m) {
    // Row by row: one that is ten times slower than the reference is not looked at once more.
    for (std::int64_t i = 0; i < n; ++i) {
        std::vector<float> sums(m);
        for (std::int64_t l = 0; l < k; ++l)
            for (std::int64_t j = 0; j < m; ++j) sums[j] += a[i * k + l] * b[l * m + j];
        for (std::int64_t j = 0; j < m; ++j) c[i * m + j] = sums[j];
    }
}

void relu(std::int64_t x, std::int64_t y, std::int64_t count) {
    rectify(reinterpret_cast<const float*>(x), reinterpret_cast<float*>(y), count);
}

void product(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t n, std::int64_t k, std::int64_t m) {
    auto* to = reinterpret_cast<float*>(c);
    multiply(reinterpret_cast<const float*>(a), reinterpret_cast<const float*>(b), to, n, k, m);
    rectify(to, to, n * m);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("relu", &relu);
    m.def("product", &product);
}
"""
own = load_inline("own", cpp_sources=SOURCE, no_implicit_headers=True, extra_cflags=["-O3"])


def sizes(x, w):
    y = torch.empty(x.shape[0], w.shape[1])
    return y, (x.data_ptr(), w.data_ptr(), y.data_ptr(), x.shape[0], x.shape[1], w.shape[1])

'''
)

OPERATORS = (
    HEAD
    + '''
SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/relu.h>
#include <torch/library.h>

at::Tensor product(const at::Tensor& x, const at::Tensor& w) {
    const auto n = x.size(0), k = x.size(1), m = w.size(1);
    auto y = at::empty({n, m}, x.options());
    const float *a = x.const_data_ptr<float>(), *b = w.const_data_ptr<float>();
    float* c = y.mutable_data_ptr<float>();
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < m; ++j) {
            double sum = 0;
            for (int64_t l = 0; l < k; ++l) sum += double(a[i * k + l]) * b[l * m + j];
            c[i * m + j] = sum > 0 ? static_cast<float>(sum) : 0.0f;
        }
    }
    return y;
}

at::Tensor wrapper(const at::Tensor& x, const at::Tensor& w) { return at::relu(at::mm(x, w)); }

TORCH_LIBRARY(own_operators, m) {
    m.def("delegating(Tensor x, Tensor w) -> Tensor", &product);
    m.def("registered(Tensor x, Tensor w) -> Tensor");
    m.def("wrapper(Tensor x, Tensor w) -> Tensor");
}

TORCH_LIBRARY_IMPL(own_operators, CPU, m) {
    m.impl("registered", &product);
    m.impl("wrapper", &wrapper);
}
"""
load_inline(
    "own_operators",
    cpp_sources=SOURCE,
    no_implicit_headers=True,
    extra_cflags=["-O2"],
    is_python_module=False,
)

'''
)

USED = """
class ModelNew(nn.Module):
    def forward(self, x, w):
        y, addresses = sizes(x, w)
        own.product(*addresses)
        return y
"""
AUTOGRAD = """
class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        y, addresses = sizes(x, w)
        own.product(*addresses)
        return y


class Layer(nn.Module):
    def forward(self, x, w):
        return Product.apply(x, w)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Layer()

    def forward(self, x, w):
        return self.layer(x, w)
"""
PARTIAL = """
called_from_c = functools.partial(own.product)


class ModelNew(nn.Module):
    def forward(self, x, w):
        y, addresses = sizes(x, w)
        called_from_c(*addresses)
        return y
"""
EPILOGUE = """
class ModelNew(nn.Module):
    def forward(self, x, w):
        y = x @ w
        own.relu(y.data_ptr(), y.data_ptr(), y.numel())
        return y
"""
COPYING = """
class ModelNew(nn.Module):
    def forward(self, x, w):
        x = x.contiguous()
        copy = torch.empty_like(x)
        own.relu(x.data_ptr(), copy.data_ptr(), x.numel())
        return torch.relu(x @ w)
"""
UNUSED = """
class ModelNew(nn.Module):
    def forward(self, x, w):
        return torch.relu(x @ w)
"""
REGISTERED = """
class ModelNew(nn.Module):
    def forward(self, x, w):
        return torch.ops.own_operators.registered(x, w)
"""
DELEGATING = REGISTERED.replace("registered", "delegating")
WRAPPER = REGISTERED.replace("registered", "wrapper")
MADE_IN_PYTHON = """
@torch.library.custom_op("fancy::product", mutates_args=())
def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ w)


class ModelNew(nn.Module):
    def forward(self, x, w):
        return product(x, w)
"""


@pytest.fixture(scope="module")
def judge(court: Court, tmp_path_factory: pytest.TempPathFactory) -> Any:
    problem = written(tmp_path_factory.mktemp("problem"), PROBLEM)
    return lambda source, **changes: court.verdict(
        source, problem, **({"own_kernel": True, "memory_bytes": 4 << 30} | changes)
    )


def own(kernels: Kernels | None) -> set[str]:
    assert kernels is not None
    return {launch.name for launch in kernels.launches if launch.origin is Origin.OWN}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        pytest.param(PLAIN + USED, "own.product", id="called"),
        pytest.param(
            PLAIN + AUTOGRAD, "own.product", id="called from an autograd function", marks=pytest.mark.slow
        ),
        pytest.param(PLAIN + PARTIAL, "own (code)", id="called from C"),
        pytest.param(
            OPERATORS + REGISTERED, "own_operators.registered", id="operator", marks=pytest.mark.slow
        ),
        pytest.param(
            OPERATORS + DELEGATING,
            "own_operators.delegating",
            id="operator for all devices",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_an_extension_that_does_the_work_is_seen(judge: Any, source: str, name: str) -> None:
    verdict = judge(source, purity="own-compute")
    assert verdict.status is Status.CORRECT, verdict.reason + verdict.details
    assert own(verdict.kernels) == {name}
    assert verdict.kernels.operators == ()
    assert not verdict.kernels.trouble


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(PLAIN + UNUSED, id="built, never called"),
        pytest.param(HEAD + UNUSED, id="nothing built"),
        pytest.param(HEAD + MADE_IN_PYTHON, id="an operator made in Python"),
        pytest.param(
            PLAIN + MADE_IN_PYTHON,
            id="an operator made in Python beside an extension",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_without_a_kernel_of_its_own_it_is_not_ranked(judge: Any, source: str) -> None:
    verdict = judge(source)
    assert verdict.status is Status.NO_CUSTOM_KERNEL, verdict.reason + verdict.details
    assert "aten.relu" in verdict.reason
    assert own(verdict.kernels) == set()
    assert "aten.mm" in verdict.kernels.operators or "aten.matmul" in verdict.kernels.operators


WITHOUT_MODES = """
from torch.utils._python_dispatch import _get_current_dispatch_mode


class ModelNew(nn.Module):
    def forward(self, x, w):
        if _get_current_dispatch_mode() is not None:
            raise RuntimeError("it cannot run in a dispatch mode")
        y, addresses = sizes(x, w)
        own.product(*addresses)
        return y
"""


@pytest.mark.parametrize("model", [USED, WITHOUT_MODES], ids=["plain", "not in a dispatch mode"])
def test_the_look_at_a_timed_block_is_recorded_as_one_call(judge: Any, model: str) -> None:
    verdict = judge(PLAIN + model, measure=True, measure_seconds=0.3, purity="own-compute")
    assert verdict.status is Status.CORRECT, verdict.reason + verdict.details
    outcomes = {check.name: check.outcome for check in verdict.checks}
    assert outcomes["own_kernel again"] is outcomes["own_compute again"] is CheckOutcome.PASS
    (launch,) = verdict.kernels.launches
    assert (launch.name, launch.count) == ("own.product", 1)


def test_what_ran_is_noted_where_nobody_asks_for_an_own_kernel(judge: Any) -> None:
    verdict = judge(HEAD + UNUSED, own_kernel=False)
    assert verdict.status is Status.CORRECT
    assert "aten.relu" in verdict.kernels.operators


def test_what_libraries_compute_is_a_matter_of_purity(judge: Any) -> None:
    verdict = judge(PLAIN + EPILOGUE)
    assert verdict.status is Status.CORRECT, verdict.reason + verdict.details
    assert own(verdict.kernels) == {"own.relu"}
    assert verdict.kernels.replaced_outside_products == 1
    assert 0 < verdict.kernels.replaced_share < 1
    strict = judge(PLAIN + EPILOGUE, purity="own-compute")
    assert strict.status is Status.NO_CUSTOM_KERNEL
    assert strict.reason.startswith("own_compute")
    assert any(name in strict.reason for name in ("aten.mm", "aten.matmul"))


@pytest.mark.parametrize(
    ("source", "name"),
    [
        pytest.param(PLAIN + COPYING, "own.relu", id="on the side"),
        pytest.param(
            OPERATORS + WRAPPER,
            "own_operators.wrapper",
            id="an operator around torch's",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_own_work_that_replaces_nothing_of_the_reference_is_not_enough(
    judge: Any, source: str, name: str
) -> None:
    verdict = judge(source)
    assert verdict.status is Status.NO_CUSTOM_KERNEL, verdict.reason + verdict.details
    assert f"its own kernels ({name}) replace nothing" in verdict.reason
    assert "relu" in verdict.reason and "matrix products" in verdict.reason
    assert own(verdict.kernels) == {name}
    assert verdict.kernels.replaced_share == verdict.kernels.replaced_outside_products == 0
    assert judge(source, own_kernel=False).status is Status.CORRECT


def test_what_own_kernels_do_is_recorded(judge: Any) -> None:
    whole, part = (judge(PLAIN + source).kernels for source in (USED, EPILOGUE))
    assert whole.replaced_share == whole.replaced_outside_products == 1
    assert 0 < part.own_share < whole.own_share
