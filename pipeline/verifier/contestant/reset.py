"""A reference may leave memory and settings of torch's behind in its process. Another is loaded there only
after the memory went back, and never where settings changed: the candidate's fresh process has torch's own.
"""

from __future__ import annotations

import ctypes
import gc

import torch

from kernelproof.verifier.contestant.used_memory import give_back

_trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)  # musl has none

Settings = tuple[object, ...]


def settings_of_torch() -> Settings:
    """Those that hold for the whole process and change what a model computes, or how fast."""
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    return (
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
        (cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32),
        (matmul.allow_fp16_reduced_precision_reduction, matmul.allow_bf16_reduced_precision_reduction),
        (torch._C._get_flash_sdp_enabled(), torch._C._get_mem_efficient_sdp_enabled()),
        (torch._C._get_math_sdp_enabled(), torch._C._get_cudnn_sdp_enabled()),
    )


def give_memory_back(device: torch.device) -> None:
    """All that nothing refers to, of the host and of the GPU, which is idle. The allocators keep it
    otherwise, as long as the process lives."""
    gc.collect()
    if device.type == "cuda":
        torch._C._cuda_clearCublasWorkspaces()
    give_back(device)
    _trim(0)
