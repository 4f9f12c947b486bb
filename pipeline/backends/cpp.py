"""Inline C++ on the CPU."""

from __future__ import annotations

import re

from kernelproof.backends.interface import Backend, Device, Timing, Words


def has_function_body(text: str) -> bool:
    """True when the text defines a function: `) {`, with qualifiers or a return type between."""
    return re.search(r"\)[\w\s:>&<*-]{0,80}\{", text) is not None


BACKEND = Backend(
    name="cpp",
    order=1,
    device=Device.CPU,
    default_size="small",
    own_code="a C++ function",
    holds_own_code=has_function_body,
    pretended="cpu",
    needs_nvcc=False,
    counts_threads=True,
    missing="the cpp backend needs a C++ compiler; see kernelproof doctor",
    timing=Timing(
        # To draw the inputs takes many times as long as the calls.
        longest_block_ms=10.0,
        # Two processes that take turns on a processor evict each other's lines from its caches.
        alone_slack=1.10,
        loop_slack=None,  # nothing of a candidate's works on while it is held
        # The difference between pairs of processes depends on the machine and on its other load.
        session_least=0.01,
        session_device_spreads=3.0,
        session_ms=0.002,
        slowed=0.15,
        launches=False,
    ),
    summary="C++ on the CPU",
    words=Words(
        language="C++ (OpenMP, CPU)",
        rules=(
            "Call `torch.utils.cpp_extension.load_inline` once, at module level, with every kernel in it "
            "and a name of your choice.\n"
            "   The functions go to `cpp_sources` and their names to `functions`. For OpenMP pass "
            '`extra_cflags=["-O3", "-fopenmp"]` and `extra_ldflags=["-fopenmp"]`.',
            "Use the threads OpenMP gives you: start none of your own, leave none behind, and do not change "
            "the number of threads.",
        ),
    ),
    template="basic-v1",
)
