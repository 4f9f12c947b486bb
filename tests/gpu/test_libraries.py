"""No kernel that torch launches is taken for a candidate's, whatever its name: in real traces on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch.nn import functional

from kernelproof.types import Origin
from kernelproof.verifier.contestant.profiling import Watched
from kernelproof.verifier.referee.provenance.origins import Evidence, holds_kernel, origin
from kernelproof.verifier.referee.provenance.reports import MOST_LOOKUPS, read_report

pytestmark = pytest.mark.gpu
GPU = torch.device("cuda", 0)
Operation = Callable[[], object]


def drawn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, device=GPU).to(dtype)


def positive() -> torch.Tensor:
    """Symmetric, and positive definite."""
    square = drawn(65, 65)
    return square @ square.T + 65 * torch.eye(65, device=GPU)


def whole() -> torch.Tensor:
    return torch.arange(1, 99, device=GPU)


def products(dtype: torch.dtype) -> object:
    a, b = drawn(7, 33, 129, dtype=dtype), drawn(7, 129, 17, dtype=dtype)
    row, column = drawn(7, 1, 33, dtype=dtype), drawn(7, 129, 1, dtype=dtype)
    return a @ b, a[0] @ b[0], a[0] @ b[0, :, 0], a[0, 0] @ b[0], row @ a, a @ column, column @ row


def convolutions(dtype: torch.dtype) -> object:
    image, filters = drawn(4, 16, 33, 33, dtype=dtype), drawn(32, 16, 3, 3, dtype=dtype)
    apart = functional.conv2d(image, filters[:16, :1], groups=16)
    back = functional.conv_transpose2d(image, filters[:16, :8], stride=2)
    return functional.conv2d(image, filters), apart, back


SOLVERS: dict[str, Operation] = {
    "determinant": lambda: torch.linalg.det(positive()),
    "cholesky": lambda: torch.linalg.cholesky(positive()),
    "eigenvalues": lambda: torch.linalg.eigh(positive()),
    "inverse": lambda: torch.linalg.inv(positive()),
    "singular values": lambda: torch.linalg.svdvals(drawn(65, 65)),
    "least squares": lambda: torch.linalg.qr(drawn(65, 65)),
}
OPERATIONS: dict[str, Operation] = SOLVERS | {
    "triangular": lambda: torch.linalg.solve_triangular(positive(), drawn(65, 65), upper=True),
    "fourier": lambda: torch.fft.fft(drawn(33, 1000)),
    "fourier, a prime": lambda: torch.fft.fft(drawn(33, 1009)),
    "fourier, real": lambda: torch.fft.irfft(torch.fft.rfft(drawn(64, 254))),
    "recurrent": lambda: torch.nn.LSTM(32, 64, 2).to(GPU)(drawn(17, 5, 32)),
    "sparse": lambda: positive().to_sparse_csr() @ drawn(65, 65),
    "sparse, listed": lambda: torch.sparse.mm(positive().to_sparse(), drawn(65, 65)),
    "sorted": lambda: drawn(1 << 20).sort(),
    "summed up": lambda: drawn(1 << 20).cumsum(0),
    "permutation": lambda: torch.randperm(999, device=GPU),
    "scattered": lambda: drawn(9).index_put((whole()[:2] // 3,), drawn(2), accumulate=True),
    "attention": lambda: functional.scaled_dot_product_attention(*(drawn(2, 4, 64, 64) for _ in "qkv")),
    "compiled while it runs": lambda: (torch.special.i0(drawn(99)), torch.gcd(whole(), whole() + 6)),
}
for each in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
    OPERATIONS[f"products in {each}"] = partial(products, each)
    OPERATIONS[f"convolutions in {each}"] = partial(convolutions, each)


def traced(operation: Operation) -> dict[str, Any]:
    with torch.no_grad():
        operation()  # what is compiled once is compiled
        with Watched(GPU) as watched:
            operation()
    return watched.report


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize("name", OPERATIONS)
def test_what_torch_launches_is_no_candidates(name: str) -> None:
    report = traced(OPERATIONS[name])
    kernels = read_report({"profile": report}, [], Evidence()).kernels
    assert kernels.trouble == ""
    assert kernels.launches != ()
    told = (Origin.LIBRARY, Origin.COPY)
    assert [launch.name for launch in kernels.launches if launch.origin not in told] == []


@pytest.mark.parametrize("name", SOLVERS)
def test_kernels_of_libraries_are_found_in_their_files(name: str) -> None:
    """As where a candidate calls the library itself, or replays a graph: no operator of torch is around it.
    Most names of cuSOLVER's say nothing of it."""
    report = traced(SOLVERS[name])
    launches = {kernel for _, kernel, _, _ in report["device"]}
    unknown = {kernel for kernel in launches if origin(kernel) is Origin.UNKNOWN and "(" in kernel}
    assert {kernel for kernel in unknown if not holds_kernel(kernel)} == set()
    plain = [["kernel", *rest] for _, *rest in report["device"]]
    found = read_report({"profile": report | {"device": plain}}, [], Evidence()).kernels
    told = [launch for launch in found.launches if launch.name in unknown and launch.origin is Origin.LIBRARY]
    assert len(told) == min(len(unknown), MOST_LOOKUPS) > 0
