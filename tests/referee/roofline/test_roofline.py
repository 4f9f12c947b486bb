"""The roofline: what is counted of known problems, and that the count never exceeds what must be moved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelproof.problems import open_suite
from kernelproof.types.measurement import Ceilings
from kernelproof.verifier.referee import roofline
from kernelproof.verifier.referee.inputs.problem import LoadedProblem
from kernelproof.verifier.referee.roofline import Work
from tests.referee.problems import text, written

Count = Callable[..., Work]


@pytest.fixture
def count(tmp_path: Path) -> Count:
    """Counts a problem given by its forward's body, its inputs, and the body of its __init__."""

    def counted(forward: str, inputs: str, init: str = "pass", names: str = "x", device: str = "cpu") -> Work:
        loaded = LoadedProblem(written(tmp_path, text(forward, inputs, init, names=names)), "full")
        place = torch.device(device)
        return roofline.count(loaded, loaded.construct(1, place), loaded.draw(2, place), 3)

    return counted


def test_element_by_element(count: Count) -> None:
    assert count("return torch.relu(x)", "torch.randn(64, 32)") == Work(8192, 8192, 0, 8192)
    assert count("return torch.relu(x.half())", "torch.randn(64, 32)") == Work(8192, 4096, 0, 8192)


def test_products(count: Count) -> None:
    m, n, k = 8, 16, 32
    work = count("return x @ y", f"torch.randn({m}, {k}), torch.randn({k}, {n})", names="x, y")
    assert work == Work(4 * (m * k + k * n), 4 * m * n, 2 * m * n * k, 4 * (m * k + k * n))
    work = count("return self.linear(x)", f"torch.randn({m}, {k})", f"self.linear = nn.Linear({k}, {n})")
    assert work == Work(4 * (m * k + k * n + n), 4 * m * n, 2 * m * n * k, 4 * m * k)
    work = count("return self.c(x)", "torch.randn(2, 3, 10, 10)", "self.c = nn.Conv2d(3, 4, 3, bias=False)")
    assert work == Work(4 * (600 + 108), 4 * 2 * 4 * 64, 2 * 2 * 4 * 64 * 27, 4 * 600)


def test_an_embedding_reads_the_rows_it_takes(count: Count) -> None:
    table = "self.e = nn.Embedding(1000, 16)"
    work = count("return self.e(x)", "torch.arange(7)", table)
    assert work == Work(7 * 64 + 7 * 8, 7 * 64, 0, 0)  # the positions are the same in every draw
    work = count("return self.e(x)", "torch.randint(3, 4, (50,))", table)
    assert (work.bytes_read, work.bytes_written) == (64 + 50 * 8, 50 * 64)
    bag = count("return self.e(x)", "torch.arange(8).view(2, 4)", "self.e = nn.EmbeddingBag(1000, 16)")
    assert bag.bytes_read == 8 * 64 + 8 * 8


@pytest.mark.parametrize(
    ("forward", "elements"),
    [
        ("return x[:, :1] * 2", 64),
        ("return x[torch.tensor([1, 1, 5])] * 2", 2 * 32),
        ("return x.index_select(1, torch.tensor([3, 3]))", 64),
        ("return x.gather(1, torch.zeros(64, 5, dtype=torch.long))", 64),
        ("return x.take(torch.tensor([0, 9, 9]))", 2),
        ("return x.diagonal() * 2", 32),
        ("return x.triu()", sum(max(32 - i, 0) for i in range(64))),
        ("return torch.where(torch.arange(64)[:, None] < 5, x, 0.0)", 5 * 32),
        ("return x.masked_fill(torch.arange(32) < 30, 0.0)", 2 * 64),
        ("return x * (torch.arange(64) < 16)[:, None]", 16 * 32),
        ("return x + torch.tensor([0.0, -torch.inf, -1e9, -5.0]).repeat(8)", 64 * 16),
        ("return torch.eye(64)[:5] @ x", 5 * 32),
        ("return torch.eye(64)[:5].expand(2, 5, 64) @ x.expand(2, 64, 32)", 5 * 32),
        ("return F.max_pool2d(x[None], 1, 2)", 32 * 16),
        ("return F.avg_pool2d(x[None], 3, 4)", 48 * 24),
        ("return F.conv2d(x[None, None], torch.ones(1, 1, 1, 2), stride=(2, 4))", 32 * 16),
        ("return F.interpolate(x[None, None], scale_factor=0.5)", 32 * 16),
        ("return F.pad(x, (-1, -1))", 64 * 30),
        ("return F.nll_loss(x, torch.arange(64) % 32)", 64),
        ("return x[:, :16].sum() + x[:, 8:24].sum()", 64 * 24),
        ("return torch.cat([x[:, i] for i in range(0, 32, 2)])", 64 * 16),
        ("return x.unfold(1, 8, 4).sum(-1)", 64 * 32),
        ("return x.unfold(1, 8, 12).sum(-1)", 64 * 24),
        ("return x.as_strided((3, 4, 5), (1, 2, 7)) + 1", 37),
        ("return torch.zeros_like(x) + torch.randn(x.shape)", 0),
        ("return x.t()", 0),
        ("return x.expand(5, 64, 32) + 1", 2048),
        ("x.add_(1); return x + 1", 2048),
        ("x.copy_(torch.randn(x.shape)); return x + 1", 0),
    ],
)
def test_what_an_operator_reads(count: Count, forward: str, elements: int) -> None:
    work = count(forward, "torch.randn(64, 32)")
    assert work.bytes_read == 4 * elements
    assert work.bytes_needed <= work.bytes_read


@pytest.mark.parametrize(
    ("forward", "elements"),
    [
        ("return x * 2, x[0] * 3", 2048),
        ("y = x.exp().sum(); return x[:, 0] * 2", 64),  # nothing depends on y
        ("return x.exp()[:, :4]", 64 * 4),
        ("y = x.exp(); return y[:, :16].sum() + y[:, 8:24].sum()", 64 * 24),
        ("a, b = (x * 2).chunk(2, 1); return a * b", 2048),
        ("y = x * 2; y.relu_(); return y", 2048),
        ("y = x * 2; y.zero_(); return y", 0),
        ("x[:, :16] = 0.0; return x + 1", 64 * 16),
        ("y = torch.empty(64, 32); y.copy_(x); return y", 2048),
        ("y = torch.empty(64, 32); y[:32] = x[:32]; y[32:] = x[:32] * 2; return y", 1024),
        ("return torch.full((4,), x.max().item())", 0),
        ("return x @ torch.ones(32, 8)", 2048),
        ("return x.softmax(1)", 2048),
        ("return self.b + 0 * x", 2048),
        ("return self.b * 2", 0),
        ("return x", 0),
    ],
)
def test_what_no_program_can_do_without(count: Count, forward: str, elements: int) -> None:
    init = "self.register_buffer('b', torch.ones(64, 32))"
    assert count(forward, "torch.randn(64, 32)", init).bytes_needed == 4 * elements


def test_what_is_equal_in_another_draw_is_not_needed(count: Count) -> None:
    assert count("return x * m", "torch.randn(9, 9), torch.ones(9, 9)", names="x, m") == Work(
        648, 324, 0, 324
    )
    work = count("return x @ x", "torch.tril(torch.randn(16, 16))")
    assert (work.bytes_read, work.bytes_needed) == (4 * 256, 4 * 136)


@pytest.mark.parametrize(
    ("forward", "elements"),
    [
        ("return x.t()", 0),
        ("return x[3:], x.view(-1)", 0),
        ("return x.add_(1)", 0),
        ("return self.b", 0),
        ("return torch.ones(4)", 0),
        ("return (x * 2).sum(0, keepdim=True).expand(64, 32)", 32),
        ("y = x * 2; return y, y.t(), {'part': y[0]}", 2048),
        ("return [x.argmax(1)]", 2 * 64),
        ("return x + torch.rand(64, 32)", 2048),
    ],
)
def test_what_is_written(count: Count, forward: str, elements: int) -> None:
    init = "self.register_buffer('b', torch.ones(64, 32))"
    assert count(forward, "torch.randn(64, 32)", init).bytes_written == 4 * elements


def test_counting_leaves_the_model_as_it_was(tmp_path: Path) -> None:
    source = text("return self.norm(x)", "torch.randn(8, 4)", "self.norm = nn.BatchNorm1d(4)")
    loaded, cpu = LoadedProblem(written(tmp_path, source), "full"), torch.device("cpu")
    model = loaded.construct(1, cpu)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    work = roofline.count(loaded, model, loaded.draw(2, cpu), 3)
    assert work.bytes_needed == work.bytes_written == 4 * 32
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def ceilings(cache_bytes: int = 0) -> Ceilings:
    return Ceilings(
        bytes_per_s=1e12, operations_per_s=1e15, cache_bytes=cache_bytes, aa_spread=0.0, measured="now"
    )


def test_times_and_fraction() -> None:
    work = Work(bytes_read=3_000_000_000, bytes_written=1_000_000_000, operations=10**12, bytes_needed=10**9)
    found = roofline.roofline_of(work, ceilings(), 8.0)
    assert (found.memory_ms, found.compute_ms, found.needed_ms) == pytest.approx((4.0, 1.0, 2.0))
    assert found.fraction == pytest.approx(0.5)
    cached = roofline.roofline_of(work, ceilings(400_000_000), 8.0)
    assert cached.memory_ms == pytest.approx(3.6)
    assert roofline.roofline_of(work, ceilings(1 << 40), 8.0).memory_ms == pytest.approx(3.0)


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, 10**9), st.floats(1e-3, 1e6))
def test_only_what_must_be_moved_convicts(needed: int, written: int, cache: int, ms: float) -> None:
    work = Work(needed + 10**12, written, 10**18, needed)
    found = roofline.roofline_of(work, ceilings(cache), ms)
    least = (needed + max(0, written - cache)) / 1e12 * 1e3
    assert found.needed_ms == pytest.approx(least)
    assert roofline.impossible(found, ms) == (ms * roofline.BEYOND < found.needed_ms)
    assert not roofline.impossible(found, max(least, 1e-9))


@given(st.data())
@settings(max_examples=60)
def test_no_more_of_an_input_is_needed_than_changes_the_outputs(data: st.DataObject) -> None:
    """Elements that can be replaced without changing any output are not needed."""
    shape = (4, 6)
    pieces = st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(1, 2), st.integers(0, 5))
    cuts = data.draw(st.lists(pieces, min_size=1, max_size=3))

    class Program(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            y = torch.sin(x) + 1
            return [y[a : a + n : s, c:].clone() * (c + 1) for a, n, s, c in cuts]

    class Loaded:
        def run(self, model: torch.nn.Module, arguments: list[torch.Tensor], seed: int) -> object:
            with torch.no_grad():
                return model(*arguments)

        def draw(self, seed: int, device: torch.device) -> list[torch.Tensor]:
            return [torch.rand(shape, generator=torch.Generator().manual_seed(seed % 2**32))]

    x = torch.full(shape, 2.0)
    work = roofline.count(Loaded(), Program(), [x], 5)  # type: ignore[arg-type]
    base = Program()(x)
    matter = 0
    for place in range(x.numel()):
        other = x.clone()
        other.view(-1)[place] = 3.0
        changed = Program()(other)
        matter += any(not torch.equal(a, b) for a, b in zip(base, changed, strict=True))
    assert work.bytes_needed == matter * 4


def test_every_problem_of_ours_can_be_counted() -> None:
    cpu = torch.device("cpu")
    for problem in open_suite().problems():
        loaded = LoadedProblem(problem, "small" if "small" in problem.sizes else "full")
        arguments = loaded.draw(1, cpu)
        work = roofline.count(loaded, loaded.construct(2, cpu), arguments, 3)
        moved = sum(t.numel() * t.itemsize for t in arguments if isinstance(t, torch.Tensor))
        assert 0 < work.bytes_needed <= min(work.bytes_read, moved), problem.id
        assert work.bytes_written > 0, problem.id


@pytest.mark.gpu
def test_the_gpu_counts_what_the_cpu_counts(count: Count) -> None:
    for forward, inputs, init in (
        ("return torch.relu(x)", "torch.randn(64, 32)", "pass"),
        ("return self.m(x)[:, :1]", "torch.randn(64, 32)", "self.m = nn.Linear(32, 8)"),
        ("return self.e(x)", "torch.arange(7)", "self.e = nn.Embedding(1000, 16)"),
        ("return x[:, torch.tensor([1, 1], device=x.device)]", "torch.randn(64, 32)", "pass"),
        ("return x.masked_fill(x > 0, 0.0).sort(1)[1]", "torch.randn(64, 32)", "pass"),
    ):
        on_gpu = count(forward, inputs, init, device="cuda")
        on_cpu = count(forward, inputs, init)
        assert (on_gpu.bytes_read, on_gpu.bytes_written) == (on_cpu.bytes_read, on_cpu.bytes_written) or (
            "masked_fill" in forward  # other draws, other masks
        )
        assert on_gpu.operations == on_cpu.operations
        assert on_gpu.bytes_needed <= on_gpu.bytes_read


@pytest.mark.parametrize(
    ("forward", "constant"),
    [
        ("return torch.relu(x)", False),
        ("return x.amax(1, keepdim=True) - x.amax(1, keepdim=True).mean(1, keepdim=True)", True),
        ("return (x - x.mean(1, keepdim=True)).mean(1)", True),  # rounding noise
        ("return torch.relu(x), torch.softmax(x.sum(1, keepdim=True), 1)", True),
        ("return x > 0", False),
        ("return (x.sum(1, keepdim=True).argmax(1)),", True),
    ],
)
def test_an_output_that_is_the_same_in_another_draw_needs_no_reading(
    forward: str, constant: bool, tmp_path: Path
) -> None:
    problem = written(tmp_path, text(forward, "torch.randn(64, 32)"))
    loaded, cpu = LoadedProblem(problem, "full"), torch.device("cpu")
    draws = [loaded.draw(seed, cpu) for seed in (1, 2)]
    assert roofline.has_constant_output(loaded, loaded.construct(1, cpu), draws, 3) == constant
