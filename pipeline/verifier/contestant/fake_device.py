"""A pretended device where there is none. The build stage lets a candidate run far enough to ask for all its
builds. Nothing else that the candidate does here counts.

`torch.cuda` says that there is a GPU, and tensors that are asked for on it have shapes and no memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from kernelproof.verifier.contestant import gpu_facts

_GETTERS = {getattr(torch.Tensor, name).__get__: name for name in ("device", "is_cuda", "is_cpu", "is_meta")}
_IS_META = getattr(torch.Tensor, "is_meta").__get__  # noqa: B009


class FakeDevice(TorchFunctionMode):
    """While it is entered, tensors that are asked for on a device have no memory there, and say that they are
    on it."""

    def __init__(self, device: str, *, cpu_too: bool) -> None:
        """`cpu_too`: those that are asked for on the CPU, as well."""
        super().__init__()
        self._device = torch.device(device, 0) if device == "cuda" else torch.device(device)
        self._replaced = {"cuda", "cpu"} if cpu_too else {"cuda"}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = _GETTERS.get(func)
        if name is not None:
            if not _IS_META(args[0]):
                return func(*args)
            return self._device if name == "device" else name == f"is_{self._device.type}"
        if func is torch.Tensor.cuda:
            return args[0].to("meta")
        if func is torch.Tensor.cpu and _IS_META(args[0]):
            return args[0]
        return func(*self._elsewhere(args), **self._elsewhere(kwargs or {}))

    def _elsewhere(self, value: Any) -> Any:
        """Arguments with the memoryless device for those that are pretended."""
        if isinstance(value, torch.device | str) and str(value).partition(":")[0] in self._replaced:
            return torch.device("meta")
        if isinstance(value, tuple):
            return tuple(map(self._elsewhere, value))
        if isinstance(value, dict):
            return {key: self._elsewhere(item) for key, item in value.items()}
        return value


def fake_gpu(capability: tuple[int, int]) -> None:
    """From now on `torch.cuda` says that there is one GPU of this compute capability."""
    for name, value in gpu_facts.functions(capability).items():
        setattr(torch.cuda, name, value)
    torch.version.cuda = torch.version.cuda or "13.0"


def rehearse(candidate: ModuleType, name: str, problem: str, sizes: Mapping[str, Any], device: str) -> None:
    """Constructs the candidate's model as the problem says, and calls it once, without memory."""
    definitions: dict[str, Any] = {"__name__": "problem"}
    with FakeDevice(device, cpu_too=True), torch.device("meta"), torch.no_grad():
        exec(compile(problem, "problem.py", "exec"), definitions)
        definitions |= sizes
        model = candidate.__dict__[name](*definitions["get_init_inputs"]())
        model(*definitions["get_inputs"]())
