"""What a pretended `torch.cuda` says of the GPU that a build is for. Standard library only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any


def functions(capability: tuple[int, int]) -> dict[str, Callable[..., Any]]:
    """Functions of `torch.cuda` by name, where there is one GPU of this compute capability."""
    major, minor = capability
    properties = SimpleNamespace(
        name="NVIDIA GPU",
        major=major,
        minor=minor,
        total_memory=80 << 30,
        multi_processor_count=132,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        max_threads_per_block=1024,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=227 << 10,
        shared_memory_per_multiprocessor=228 << 10,
        L2_cache_size=50 << 20,
    )
    values: dict[str, Any] = {
        "is_available": True,
        "is_initialized": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_name": properties.name,
        "get_device_capability": (major, minor),
        "get_device_properties": properties,
        "mem_get_info": (properties.total_memory, properties.total_memory),
        "get_arch_list": [f"sm_{major}{minor}"],
        "is_bf16_supported": True,
        "synchronize": None,
        "empty_cache": None,
        "set_device": None,
        "init": None,
    }
    return _constant(values)


def no_gpu() -> dict[str, Callable[..., Any]]:
    """The same where there is none."""
    return _constant({"is_available": False, "is_initialized": False, "device_count": 0})


def _constant(values: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    return {name: lambda *_, _value=value, **__: _value for name, value in values.items()}
