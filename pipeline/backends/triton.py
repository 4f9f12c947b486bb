"""Triton kernels on a GPU: compiled when they are first called; interpreted where there is no GPU."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from kernelproof.backends.cuda import BACKEND as CUDA
from kernelproof.backends.interface import Backend, Device, FirstCall, Words
from kernelproof.errors import install_command
from kernelproof.pysource import parse

_DECORATORS = {"triton.jit", "jit", "triton.runtime.jit"}


def launches_own_kernel(text: str) -> bool:
    """Whether the source defines a `@triton.jit` function and launches one: `kernel[grid](...)`."""
    tree = parse(text)
    if isinstance(tree, SyntaxError):
        return False
    kernels = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any(map(_is_jit, node.decorator_list))
    }
    launches = any(
        isinstance(node, ast.Call)
        and (isinstance(node.func, ast.Subscript) or getattr(node.func, "attr", "") == "run")
        for node in ast.walk(tree)
    )
    return bool(kernels) and launches


def _is_jit(decorator: ast.expr) -> bool:
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(named) in _DECORATORS


class TritonInside:
    """The part that runs in a candidate's process, which has no module of ours beside this text."""

    def compile_only(self, capability: tuple[int, int]) -> None:
        """A driver that names the GPU and launches nothing takes the place of CUDA's."""
        import triton
        from triton.compiler.compiler import CompiledKernel
        from triton.runtime import driver
        from triton.runtime.jit import JITFunction

        def loaded(kernel: Any) -> None:
            kernel.module, kernel.function, kernel.n_regs, kernel.n_spills = 1, 1, 64, 0
            kernel.n_max_threads = 1024

        driver.set_active(self._driver(capability))
        triton.testing.do_bench = triton.testing.do_bench_cudagraph = self._once
        JITFunction.run = self._compiling(JITFunction.run)
        CompiledKernel._init_handles = loaded

    @staticmethod
    def _once(call: Callable[[], Any], *_: Any, quantiles: Any = None, **__: Any) -> Any:
        """Replaces a benchmark: calls once, so that the kernel is compiled."""
        call()
        return [1.0] * len(quantiles) if quantiles else 1.0

    @staticmethod
    def _compiling(compile_and_launch: Any) -> Any:
        """Replaces `JITFunction.run`: compiles a kernel and its launching code, and launches nothing."""
        from contextlib import suppress

        stubs: set[str] = set()
        """Hashes of the kernels whose launching code was compiled."""

        def run(kernel: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> Any:
            made = compile_and_launch(kernel, *arguments, grid=grid, warmup=True, **options)
            if made is not None and made.hash not in stubs:
                stubs.add(made.hash)
                compile_stubs(made)
            return made

        def compile_stubs(made: Any) -> None:
            """C code that launches kernels, for versions that compile it: it is kept, loaded or not."""
            from triton.backends.nvidia.driver import CudaLauncher, CudaUtils

            if len(stubs) == 1:
                with suppress(Exception):  # no libcuda is here: its first call compiles it
                    CudaUtils()
            with suppress(Exception):
                CudaLauncher(made.src, made.metadata)

        return run

    def _driver(self, capability: tuple[int, int]) -> Any:
        """A driver for a GPU of this compute capability that is not here."""
        import sys
        from types import SimpleNamespace

        from triton.backends.compiler import GPUTarget

        def launcher(source: Any, metadata: Any) -> Any:
            from triton.backends.nvidia.driver import CudaLauncher

            return CudaLauncher(source, metadata)

        torch: Any = sys.modules["torch"]
        said = torch.cuda.get_device_properties(0)
        properties = {
            "max_shared_mem": said.shared_memory_per_block_optin,
            "max_num_regs": said.regs_per_multiprocessor,
            "multiprocessor_count": said.multi_processor_count,
            "warpSize": said.warp_size,
            "sm_clock_rate": 1_980_000,
            "mem_clock_rate": 2_619_000,
            "mem_bus_width": 5120,
        }
        target = GPUTarget("cuda", capability[0] * 10 + capability[1], 32)
        return SimpleNamespace(
            get_current_target=lambda: target,
            get_current_device=lambda: 0,
            set_current_device=lambda *_: None,
            get_current_stream=lambda *_: 0,
            get_device_capability=lambda *_: capability,
            get_active_torch_device=lambda: torch.device("cuda", 0),
            get_device_interface=lambda: torch.cuda,
            get_benchmarker=lambda: self._once,
            get_empty_cache_for_benchmark=lambda: torch.empty(0),
            clear_cache=lambda *_: None,
            map_python_to_cpp_type=str,
            utils=SimpleNamespace(get_device_properties=lambda *_: properties),
            launcher_cls=launcher,
        )

    def compile_error(self, error: BaseException) -> bool:
        """Triton's own errors: of its compiler, of ptxas, or too little shared memory."""
        import sys

        errors: Any = sys.modules.get("triton.errors")
        return errors is not None and isinstance(error, errors.TritonError)

    def interpreter_lacks(self, error: BaseException) -> bool:
        """The interpreter says so itself for inline assembly; `interpreted` makes libdevice say it."""
        import sys

        errors: Any = sys.modules.get("triton.runtime.errors")
        raised = errors is not None and isinstance(error, errors.InterpreterError)
        return raised and isinstance(error.__cause__, NotImplementedError)

    def made(self) -> Sequence[tuple[str, ...]]:
        """Functions with `@triton.jit`, whoever wrote them: torch.compile's are in files of its own. A kernel
        that was compiled under another name than its function's is told by both; a function whose code says
        another file now than when it was decorated, with both."""
        import gc
        import sys

        jit: Any = sys.modules.get("triton.runtime.jit")
        found = [each for each in gc.get_objects() if isinstance(each, jit.JITFunction)] if jit else []
        told = []
        for each in found:
            caches = [cache[0] for cache in getattr(each, "device_caches", {}).values()]
            compiled = {str(getattr(kernel, "name", "")) for cache in caches for kernel in cache.values()}
            now = str(each.fn.__code__.co_filename)
            files = {now, str(getattr(each, "file_name", now))}
            names = {str(each.__name__), *compiled} - {""}
            text = ["".join(getattr(each, "raw_src", ""))] if compiled else []
            told += [(name, file, *text) for name in names for file in files]
        return told

    def interpreted(self, called: Callable[[str], None]) -> None:
        """Tells each launch of the interpreter. Nothing is timed: tuning takes the first configuration."""
        import triton
        from triton.language.extra import libdevice
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.interpreter import GridExecutor

        launch: Any = GridExecutor.__call__
        tuner: Any = Autotuner

        def told(grid: Any, *arguments: Any, **options: Any) -> Any:
            called(str(grid.fn.__name__))
            return launch(grid, *arguments, **options)

        def alike(*_: Any, quantiles: Any = None, **__: Any) -> Any:
            return [1.0] * len(quantiles) if quantiles else 1.0

        def lacking(name: str) -> Callable[..., Any]:
            def function(*_: Any, **__: Any) -> Any:
                raise NotImplementedError(f"libdevice.{name} not supported in interpreter mode")

            return function

        for name, each in list(vars(libdevice).items()):
            if getattr(each, "__module__", "") == libdevice.__name__:  # its body is empty without a GPU
                setattr(libdevice, name, lacking(name))
        GridExecutor.__call__ = told
        tuner.do_bench = staticmethod(alike)
        triton.testing.do_bench = triton.testing.do_bench_cudagraph = alike


BACKEND = Backend(
    name="triton",
    order=2,
    device=Device.GPU,
    default_size="full",
    own_code="a `@triton.jit` function and a launch of it, `kernel[grid](...)`,",
    holds_own_code=launches_own_kernel,
    pretended="cuda",
    needs_nvcc=False,
    counts_threads=False,
    missing=f"the triton backend needs the package triton: {install_command('triton')}. "
    "Without a GPU kernels are interpreted, for correctness only",
    timing=CUDA.timing,
    words=Words(
        language="Triton",
        rules=(
            "Write kernels as `@triton.jit` functions at module level, and launch them with "
            "`kernel[grid](...)` from `forward`. "
            "`@triton.autotune` may be used: it tunes before calls are timed.",
            '`tl.dot` rounds float32 to TF32 unless it is called with `input_precision="ieee"`. Compute '
            "offsets beyond 2**31 elements in int64. Launch on the current stream, and do not synchronise.",
        ),
    ),
    summary="Triton on a GPU; without one it is interpreted and not timed",
    first_call=FirstCall(
        package="triton",
        inside=TritonInside,
        variables={"TRITON_STORE_BINARY_ONLY": "1"},
        cache="TRITON_CACHE_DIR",
        tunes=lambda text: "tune" in text,
        interpreter={"TRITON_INTERPRET": "1"},
    ),
)
