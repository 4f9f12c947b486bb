"""Inline CUDA on a GPU."""

from __future__ import annotations

from kernelproof.backends.interface import Backend, Device, Timing, Words

BACKEND = Backend(
    name="cuda",
    order=0,
    device=Device.GPU,
    default_size="full",
    own_code="a `__global__` kernel",
    holds_own_code=lambda text: "__global__" in text,
    pretended="cuda",
    needs_nvcc=True,
    counts_threads=False,
    missing="the cuda backend needs a GPU, or at least nvcc to build with; neither is here. "
    "Use --backend cpp, or see kernelproof doctor",
    timing=Timing(
        longest_block_ms=60.0,
        alone_slack=1.005,
        loop_slack=1.1,
        session_least=0.004,
        session_device_spreads=0.0,
        session_ms=0.0002,
        slowed=0.05,
        launches=True,
    ),
    summary="inline CUDA on a GPU",
    words=Words(
        language="CUDA C++",
        rules=(
            "Call `torch.utils.cpp_extension.load_inline` once, at module level, with every kernel in it "
            "and a name of your choice.\n"
            "   Kernels and their launching functions go to `cuda_sources`; `cpp_sources` holds the "
            "prototypes of the functions listed in `functions`. Do not include `torch/extension.h` in the "
            "CUDA source: it makes the build slow.",
            "Launch on the current stream (`c10::cuda::getCurrentCUDAStream()`), never on the default one "
            "or your own, and check each launch with `C10_CUDA_KERNEL_LAUNCH_CHECK()`. Do not synchronise.",
        ),
    ),
    template="basic-v1",
)
