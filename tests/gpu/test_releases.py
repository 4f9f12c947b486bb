"""Masks and digests on a GPU, and the loop that needs a key for every call."""

from __future__ import annotations

import secrets
import time
from typing import Any

import pytest
import torch

from kernelproof.verifier.contestant import loop
from kernelproof.verifier.contestant.between_calls import Flush, Release, compiled
from kernelproof.verifier.referee import sides
from kernelproof.verifier.workers.shared_memory import SharedMemory, lay_out
from tests.gpu.keys import Keys

pytestmark = pytest.mark.gpu
GPU = torch.device("cuda", 0)
KEY = 0x0123456789ABCDEF_FEDCBA9876543210
SIZES = [1, 3, 1023, 1024, 1025, 8191, 8193, 100_003, 3_000_000]


@pytest.fixture
def release() -> Release:
    return Release(GPU, compiled(GPU))


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
    release.mask(zeros, *release.placed([KEY]))
    for number, tensor in enumerate(zeros):
        words = [int(word) & 0xFFFFFFFF for word in tensor.tolist()]
        assert words[:16] == chacha8(KEY, 0, number)
        assert words[-16:] == chacha8(KEY, 63, number)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool, torch.uint8])
def test_the_same_key_gives_the_inputs_back(release: Release, dtype: torch.dtype) -> None:
    memory = SharedMemory(GPU)
    drawn = [torch.randint(0, 2, (size,), device=GPU).to(dtype) for size in (1, 65, 4097, 1_000_003)]
    drawn.append(torch.randn(30, 50, device=GPU).t())
    (slot,) = lay_out(memory, drawn, [], 1)
    slot.fill(drawn)
    (key,) = release.placed([KEY])
    release.mask(slot.views, key)
    assert not any(torch.equal(mine, other) for mine, other in zip(slot.views[1:], drawn[1:], strict=True))
    release.mask(slot.views, key)
    assert all(torch.equal(mine, other) for mine, other in zip(slot.views, drawn, strict=True))
    memory.close()


def test_a_call_waits_for_its_key(release: Release) -> None:
    keys, x = Keys(release, [KEY]), torch.zeros(1024, device=GPU)
    (key,) = release.placed([KEY])
    release.mask([x], key)
    release.mask([x], release.receive(1))
    done = torch.cuda.Event()  # type: ignore[no-untyped-call]
    done.record()
    time.sleep(0.05)
    assert not done.query()
    keys.ask(None)
    torch.cuda.synchronize()
    assert not bool(x.any())


@pytest.mark.parametrize("size", SIZES)
def test_a_digest_shows_any_bit(release: Release, size: int) -> None:
    result = torch.randint(0, 256, (size,), dtype=torch.uint8, device=GPU)
    named = release.digest([result])
    assert named == release.digest([result.clone()])
    for at in (0, size // 2, size - 1):
        result[at] ^= 1
        assert release.digest([result]) != named
        result[at] ^= 1
    assert release.digest([result]) == named


def test_a_digest_shows_order_length_and_number_of_results(release: Release) -> None:
    a, b = (torch.zeros(size, dtype=torch.int32, device=GPU) for size in (20_000, 20_008))
    seen = {release.digest(results) for results in ([a], [b], [a, b], [b, a], [])}
    assert len(seen) == 5
    swapped = torch.arange(5000, device=GPU)
    named = release.digest([swapped])
    swapped[[0, 4000]] = swapped[[4000, 0]]
    assert release.digest([swapped]) != named


def test_a_result_at_an_odd_address_has_the_same_digest(release: Release) -> None:
    room = torch.randint(0, 256, (100_001,), dtype=torch.uint8, device=GPU)
    assert release.digest([room[1:]]) == release.digest([room[1:].clone()])


def test_a_forward_that_begins_before_the_key_reads_masked_inputs(release: Release) -> None:
    memory, keys = SharedMemory(GPU), [secrets.randbits(128) for _ in range(4)]
    slots = lay_out(memory, [torch.zeros(1 << 16, device=GPU)], [torch.zeros(1 << 16)], 4)
    for slot, key in zip(slots, keys, strict=True):
        slot.fill([torch.ones(1 << 16, device=GPU)])
        release.mask(slot.views, *release.placed([key]))
    fixed: list[Any] = []
    seen: list[list[bool]] = []

    def ask(before: loop.Fixed | None) -> tuple[int, None]:
        seen.append([bool((slot.views[0] == 1).all()) for slot in slots])
        fixed.append(before)
        return given.ask(before)

    given = Keys(release, keys)
    flush = Flush(sides.flush_numbers(GPU), GPU, compiled(GPU))
    flush.begin()
    calls = loop.Calls(release, ask)
    loop.run_block(
        lambda x: x + 1,
        [loop.Slot([slot.views[0]]) for slot in slots],
        *(flush, GPU, lambda: [list(slot.outputs) for slot in slots]),
        calls=calls,
    )
    assert seen == [[number < call for number in range(4)] for call in range(4)]
    for slot, named in zip(slots, [*fixed[1:], calls.fixed], strict=True):
        assert bool((slot.outputs[0] == 2).all())
        assert named["digest"] == release.digest(slot.outputs)
    memory.close()
