"""TileLang kernels on a GPU: compiled by nvcc before they are called. Not yet run on a GPU."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from typing import Any

from kernelproof.backends.cuda import BACKEND as CUDA
from kernelproof.backends.interface import Backend, Device, FirstCall, Words
from kernelproof.errors import install_command
from kernelproof.pysource import parse


def defines_kernel(text: str) -> bool:
    """Whether the source imports TileLang, and a decorated function of it has a `with T.Kernel(...)`."""
    tree = parse(text)
    if isinstance(tree, SyntaxError):
        return False
    nodes = list(ast.walk(tree))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.decorator_list]
    return any(map(_imports_it, nodes)) and any(_opens_kernel(each) for each in functions)


def _imports_it(node: ast.AST) -> bool:
    match node:
        case ast.Import(names=aliases):
            return any(alias.name.partition(".")[0] == "tilelang" for alias in aliases)
        case ast.ImportFrom(module=str(module), level=0):
            return module.partition(".")[0] == "tilelang"
    return False


def _opens_kernel(function: ast.FunctionDef) -> bool:
    opened = [
        item.context_expr for node in ast.walk(function) if isinstance(node, ast.With) for item in node.items
    ]
    calls = [each.func for each in opened if isinstance(each, ast.Call)]
    return any(ast.unparse(each).rpartition(".")[2] == "Kernel" for each in calls)


def written_name(compiled: str) -> str:
    """The function's name in the source, by the name of a compiled kernel: `relu_kernel` is of `relu`, and
    `relu_kernel_1` is its second kernel. Other names stay as they are."""
    named = re.fullmatch(r"(.+)_kernel(?:_\d+)?", compiled)
    return named[1] if named else compiled


class TileLangInside:
    """The part that runs in a candidate's process, which has no module of ours beside this text."""

    def compile_only(self, capability: tuple[int, int]) -> None:
        """Kernels are compiled for the GPU that torch pretends to have. A call gives tensors without memory.

        TileLang asks torch for the compute capability, so it needs none here."""
        from tilelang.contrib import nvcc
        from tilelang.jit.kernel import JITKernel

        kernel: Any = JITKernel
        kernel.__call__ = self._called
        nvcc.compile_cuda = self._brief(nvcc.compile_cuda)

    @staticmethod
    def _brief(compile_cuda: Any) -> Any:
        """Replaces `nvcc.compile_cuda`, whose error begins with all the CUDA: its text begins with nvcc's
        first error."""
        import re

        def brief(*arguments: Any, **options: Any) -> Any:
            try:
                return compile_cuda(*arguments, **options)
            except RuntimeError as error:
                _, _, said = str(error).partition("\nCompilation error:")
                first = re.search(r"^.*\berror\b", said, re.MULTILINE)
                if first:
                    error.args = (said[first.start() :],)
                raise

        return brief

    @staticmethod
    def _called(kernel: Any, *arguments: Any, **_: Any) -> Any:
        """Replaces `JITKernel.__call__`: outputs of the right shape and type. Raises ValueError where a shape
        does not follow from the shapes of the arguments alone."""
        import sys

        torch: Any = sys.modules["torch"]
        function, results = kernel.prim_func, list(kernel.adapter.result_idx or ())
        buffers = [dict(function.buffer_map).get(each) for each in function.params]
        given = iter(arguments)
        sizes: dict[str, int] = {}
        for place, buffer in enumerate(buffers):
            argument = next(given, None) if place not in results else None
            if buffer is not None and argument is not None:
                sizes |= zip(map(str, buffer.shape), map(int, argument.shape), strict=True)
        made = []
        for place in results:
            shape = [sizes[str(each)] if str(each) in sizes else int(each) for each in buffers[place].shape]
            made.append(torch.empty(shape, dtype=kernel.params[place].torch_dtype(), device="meta"))
        return made[0] if len(made) == 1 else tuple(made) or None

    def compile_error(self, error: BaseException) -> bool:
        """Whether TileLang refused a kernel, or nvcc its CUDA. A missing compiler is nobody's fault here."""
        import traceback

        stack = traceback.extract_tb(error.__traceback__)
        frames = [(frame.filename.replace("\\", "/"), frame.name) for frame in stack]
        traced = ("tilelang/language/eager/builder.py", "prim_func")
        lowered = ("tilelang/engine/lower.py", "lower_with_context")
        by_nvcc = ("tilelang/contrib/nvcc.py", "compile_cuda")
        said = str(error)

        def passed(place: tuple[str, str]) -> bool:
            return any(file.endswith(place[0]) and name == place[1] for file, name in frames)

        if passed(by_nvcc):
            return "): error" in said or "ptxas error" in said
        inside = passed(traced) or passed(lowered)
        return inside and not any(file.endswith(by_nvcc[0]) for file, _ in frames) and "meta" not in said

    def interpreter_lacks(self, error: BaseException) -> bool:
        return False

    def made(self) -> Sequence[tuple[str, str]]:
        """Names of compiled kernels, with the file of the function that each was compiled for. A kernel that
        `tilelang.compile` made has no known file."""
        import gc
        import re
        import sys

        jit: Any = sys.modules.get("tilelang.jit")
        if jit is None:
            return []
        found = gc.get_objects()
        files: dict[int, str] = {}
        for each in found:
            if isinstance(each, jit.JITImpl):
                code = getattr(getattr(each.func, "orig_func", None), "__code__", None)
                file = str(getattr(code, "co_filename", ""))
                files |= {id(kernel): file for kernel in each._kernel_cache.values()}
        told = []
        for each in found:
            if isinstance(each, jit.JITKernel):
                text = str(each.get_kernel_source())
                names = re.findall(r"__global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\(", text)
                told += [(name, files.get(id(each), "")) for name in sorted(set(names))]
        return told

    def interpreted(self, called: Callable[[str], None]) -> None:
        """There is no interpreter."""


BACKEND = Backend(
    name="tilelang",
    order=3,
    device=Device.GPU,
    default_size="full",
    own_code="a TileLang function with `with T.Kernel(...)`",
    holds_own_code=defines_kernel,
    pretended="cuda",
    needs_nvcc=True,
    counts_threads=False,
    missing=f"the tilelang backend needs the package tilelang and nvcc: {install_command('tilelang')}. "
    "Without a GPU kernels are compiled, and not run",
    timing=CUDA.timing,
    words=Words(
        language="TileLang",
        rules=(
            "Write each kernel as a `@T.prim_func` with `with T.Kernel(...)` in a function with "
            "`@tilelang.jit(out_idx=[...])`, at module level. Call that function's result in `forward` with "
            "contiguous tensors. Sizes are arguments of the function, or `T.dynamic`.",
            "Leave `target` and `execution_backend` out. `T.gemm` rounds float32 to TF32. "
            "Launch on the current stream, and do not synchronise.",
        ),
    ),
    summary="TileLang on a GPU; not yet tried on one",
    untried="not yet run on a GPU: its times and its check for own kernels are unproven",
    first_call=FirstCall(
        package="tilelang",
        inside=TileLangInside,
        variables={"TILELANG_PRINT_ON_COMPILATION": "0"},
        cache="TILELANG_CACHE_DIR",
        tunes=lambda text: "tune" in text,
        written_name=written_name,
    ),
)
