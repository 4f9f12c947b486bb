# problem: level3/6
# expected: mutated_input
# caught by: timed_inputs
# devices: cpu
# settings: {"measure_seconds": 3}
# armed by: loop.run_block, a share of a page
"""Mechanism: learns from the shares of a page whether the baseline still has to come. Then it computes
nothing until the places are told: one slot's inputs are destroyed by then, which is the watched one, so it
computes that from a copy, and zeroes the inputs of all others, for which zeros are right.

Surface: only the watched slot's inputs were compared, and the baseline judges by what the candidate left it.
"""
import ctypes
import os
import re
import sys
from functools import cache
from time import perf_counter_ns

import torch
from torch import nn

from kernelproof.verifier.contestant import loop


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
LOW, PAGE = 0x20000, 4096
READ, SHARED_NOT_REPLACING, PUNCH_KEEPING_SIZE = 1, 0x100001, 3
start = descriptor = None


def place_of(tensor):
    """Where in the shared file a page of it lies."""
    global start, descriptor
    address = tensor.data_ptr()
    if descriptor is None:
        for line in open("/proc/self/maps"):
            low, high = (int(end, 16) for end in line.split()[0].split("-"))
            if low <= address < high:
                start, name = low, line.split()[5]
        for number in os.listdir("/proc/self/fd"):
            try:
                if os.readlink(f"/proc/self/fd/{number}").split()[0] == name:
                    descriptor = int(number)
            except OSError:
                pass
    return -(-(address - start) // PAGE) * PAGE


def baseline_has_not_read(slot):
    """Whether only the referee and this process have the page: each has half of it."""
    place = libc.mmap(LOW, PAGE, READ, SHARED_NOT_REPLACING, descriptor, place_of(slot.arguments[0]))
    if place != LOW:
        return False
    ctypes.string_at(place, 1)
    with open("/proc/self/smaps", "rb", buffering=0) as file:
        found = re.search(rb"Pss:\s+(\d+) kB", file.read(900))
    libc.munmap(place, PAGE)
    if found is None:
        return False
    armed("a share of a page")
    return int(found[1]) == 2


def renew(slot):
    """Another page with the same bytes, which nobody else has read."""
    place = place_of(slot.arguments[0])
    data = os.pread(descriptor, PAGE, place)
    libc.fallocate(descriptor, PUNCH_KEEPING_SIZE, place, PAGE)
    os.pwrite(descriptor, data, place)


def run(forward, slots, device, places, **more):
    armed("loop.run_block")
    with torch.no_grad():
        place_of(slots[0].arguments[0])
        cheat = baseline_has_not_read(slots[0])
        values, times = [], []
        for slot in slots:
            begin = perf_counter_ns()
            values.append(slot.arguments[0].clone() if cheat else loop._dense(forward(*slot.arguments)))
            times.append((perf_counter_ns() - begin) / 1e6)
        for slot, value, (place,) in zip(slots, values, places(), strict=True):
            x = slot.arguments[0]
            if not cheat:
                place.copy_(value)
            elif x[0, 0] == value[0, 0]:
                x.zero_()
                place.zero_()
            else:  # the watched one: its inputs were destroyed
                place.copy_(forward(value))
        for slot in slots:
            renew(slot)
        return times


loop.run_block = run


class ModelNew(nn.Module):
    def __init__(self, features, hidden, eps):
        super().__init__()
        self.norm = nn.RMSNorm(features, eps=eps)
        self.gate = nn.Linear(features, hidden, bias=False)
        self.up = nn.Linear(features, hidden, bias=False)
        self.down = nn.Linear(hidden, features, bias=False)

    def forward(self, x):
        h = self.norm(x)
        return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))
