"""Masks and digests on a GPU, what is said on a call's page, and replays."""

from __future__ import annotations

import pytest
import torch

from kernelproof.verifier.contestant import loop
from kernelproof.verifier.contestant.between_calls import Digests, Release, compiled
from kernelproof.verifier.contestant.call_page import GO, CallPage
from kernelproof.verifier.referee import sides
from kernelproof.verifier.workers.shared_memory import SharedMemory, lay_out

pytestmark = pytest.mark.gpu
GPU = torch.device("cuda", 0)
KEY = 0x0123456789ABCDEF_FEDCBA9876543210
SIZES = [1, 3, 1023, 1024, 1025, 8191, 8193, 100_003, 3_000_000]


@pytest.fixture
def release() -> Release:
    return Release(GPU, compiled(GPU), torch.empty(sides.flush_bytes(GPU), dtype=torch.uint8, device=GPU))


@pytest.fixture
def digests() -> Digests:
    return Digests(GPU, compiled(GPU))


def chacha8(key: int, counter: int, number: int) -> list[int]:
    """A block of the keystream, as the paper writes it."""
    words = [key >> shift & 0xFFFFFFFF for shift in (0, 32, 64, 96)]
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *words, *words]
    start += [counter & 0xFFFFFFFF, counter >> 32, number, 0]
    s = list(start)

    def quarter(a: int, b: int, c: int, d: int) -> None:
        for x, y, z, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s[x] = (s[x] + s[y]) & 0xFFFFFFFF
            s[z] ^= s[x]
            s[z] = (s[z] << turn | s[z] >> 32 - turn) & 0xFFFFFFFF

    for _ in range(4):
        for column in range(4):
            quarter(column, 4 + column, 8 + column, 12 + column)
        for diagonal in range(4):
            quarter(diagonal, 4 + (diagonal + 1) % 4, 8 + (diagonal + 2) % 4, 12 + (diagonal + 3) % 4)
    return [(a + b) & 0xFFFFFFFF for a, b in zip(s, start, strict=True)]


def test_a_mask_is_the_keystream_of_the_papers_cipher(release: Release) -> None:
    zeros = [torch.zeros(1024, dtype=torch.int32, device=GPU) for _ in range(2)]
    release.mask(zeros, KEY)
    for number, tensor in enumerate(zeros):
        quarters = tensor.view(4, 64, 4)  # of each of the 64 blocks: neighbours lie side by side
        for block in (0, 1, 63):
            words = [int(word) & 0xFFFFFFFF for word in quarters[:, block].flatten().tolist()]
            assert words == chacha8(KEY, block, number)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool, torch.uint8])
def test_the_same_key_gives_the_inputs_back(release: Release, dtype: torch.dtype) -> None:
    memory = SharedMemory(GPU)
    drawn = [torch.randint(0, 2, (size,), device=GPU).to(dtype) for size in (1, 65, 4097, 1_000_003)]
    drawn.append(torch.randn(30, 50, device=GPU).t())
    (slot,) = lay_out(memory, drawn, [], 1)
    slot.fill(drawn)
    release.mask(slot.views, KEY)
    assert not any(torch.equal(mine, other) for mine, other in zip(slot.views[1:], drawn[1:], strict=True))
    release.mask(slot.views, KEY)
    assert all(torch.equal(mine, other) for mine, other in zip(slot.views, drawn, strict=True))
    memory.close()


def test_go_is_said_when_the_inputs_are_readable(release: Release) -> None:
    page, x = CallPage(), torch.zeros(1024, device=GPU)
    for seed in (None, 0, (1 << 62) - 7):
        page.call += 1
        release.mask([x], KEY)
        with release.of(page):
            torch.cuda._sleep(100_000_000)  # type: ignore[no-untyped-call]
            release.mask([x], KEY)
            release.flush()
            release.go(page.call, KEY)
            page.tell(seed)
            assert page.wait() == seed
            assert page._words[GO] != page.call
            torch.cuda.synchronize()
            assert page._words[GO] == page.call
        assert not bool(x.any())


def test_a_digest_is_named_under_the_key_that_came_with_go(release: Release, digests: Digests) -> None:
    page, result = CallPage(), torch.randn(100_003, device=GPU)
    digests.listen(page)  # both ends are in this process, which pins a page once
    named, other = set[bytes](), torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with release.of(page):
        for key in (KEY, KEY + 1):
            page.call += 1
            assert page.digest is None
            with torch.cuda.stream(other):
                torch.cuda._sleep(10_000_000)  # type: ignore[no-untyped-call]
                release.go(page.call, key)
            digests.begin(page.call)  # waits for go, of another stream here
            digests.fix([result, result[:7]])
            assert page.digest == digests.digest([result, result[:7]], key)
            named.add(page.digest or b"")
    assert len(named) == 2


def test_pages_are_pinned_as_long_as_the_last_few_are_used(release: Release) -> None:
    """One that was given up may lie where an older one did."""
    for _ in range(20):
        page = CallPage()
        page.call += 1
        for _ in range(2):
            with release.of(page):
                release.go(page.call, KEY)
            assert page._words[GO] == page.call
        del page


@pytest.mark.parametrize("size", SIZES)
def test_a_digest_shows_any_bit(digests: Digests, size: int) -> None:
    result = torch.randint(0, 256, (size,), dtype=torch.uint8, device=GPU)
    named = digests.digest([result], KEY)
    assert named == digests.digest([result.clone()], KEY)
    for at in (0, size // 2, size - 1):
        result[at] ^= 1
        assert digests.digest([result], KEY) != named
        result[at] ^= 1
    assert digests.digest([result], KEY) == named


def test_a_digest_shows_order_length_and_number_of_results(digests: Digests) -> None:
    a, b = (torch.zeros(size, dtype=torch.int32, device=GPU) for size in (20_000, 20_008))
    seen = {digests.digest(results, KEY) for results in ([a], [b], [a, b], [b, a], [])}
    assert len(seen) == 5
    swapped = torch.arange(5000, device=GPU)
    named = digests.digest([swapped], KEY)
    swapped[[0, 4000]] = swapped[[4000, 0]]
    assert digests.digest([swapped], KEY) != named


def test_a_result_at_an_odd_address_has_the_same_digest(digests: Digests) -> None:
    room = torch.randint(0, 256, (100_001,), dtype=torch.uint8, device=GPU)
    assert digests.digest([room[1:]], KEY) == digests.digest([room[1:].clone()], KEY)


@pytest.mark.parametrize("kept", [True, False])
def test_a_result_that_was_kept_before_the_capture_is_not_that_of_the_replays(kept: bool) -> None:
    """A forward that knows its inputs again launches nothing when it is captured: its replays took no time,
    and what they gave was compared on the inputs of the capture."""
    results: dict[int, torch.Tensor] = {}

    def forward(x: torch.Tensor) -> torch.Tensor:
        if not kept:
            return torch.relu(x)
        if x.data_ptr() not in results:
            results[x.data_ptr()] = torch.relu(x)
        return results[x.data_ptr()]

    x, source = torch.randn(1000, device=GPU), torch.randn(1000, device=GPU)
    output = torch.empty_like(x)
    flushed = torch.empty(sides.flush_bytes(GPU) // 4, device=GPU)
    times = loop.replay(forward, [x], [(x, source)], [output], flushed, GPU)
    assert len(times) == loop.REPLAYS
    assert torch.equal(output, torch.relu(source)) is not kept
