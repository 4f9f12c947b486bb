"""What one reference may leave in a process that another is loaded into: memory, and settings of torch's.

A process whose settings were changed is not used again: the candidate's, which is fresh, has torch's own.
"""

from __future__ import annotations

import ctypes
import gc

import torch

_trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)  # musl has none

Settings = tuple[object, ...]


def settings_of_torch() -> Settings:
    """Those that hold for the whole process and change what a model computes, or how fast."""
    cudnn, matmul, attention = torch.backends.cudnn, torch.backends.cuda.matmul, torch._C
    return (
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
        (cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32),
        (matmul.allow_fp16_reduced_precision_reduction, matmul.allow_bf16_reduced_precision_reduction),
        (attention._get_flash_sdp_enabled(), attention._get_mem_efficient_sdp_enabled()),
        (attention._get_math_sdp_enabled(), attention._get_cudnn_sdp_enabled()),
    )


def give_memory_back(device: torch.device) -> None:
    """All that nothing refers to, of the host and of the GPU. The allocators keep it otherwise, as long as
    the process lives."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()
    _trim(0)
