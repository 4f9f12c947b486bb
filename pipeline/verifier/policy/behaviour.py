"""Rules about what the Python code reaches for. All of them inform: the referee decides by what happens."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from kernelproof.types import Severity
from kernelproof.verifier.policy.program import Hit, Program, Registry

RULES = Registry()

FORBIDDEN_MODULES = {
    "the network": "socket ssl http urllib urllib3 requests aiohttp httpx ftplib smtplib xmlrpc torch.hub",
    "other processes": "subprocess multiprocessing torch.multiprocessing torch.distributed concurrent pty",
    "background work": "threading _thread asyncio signal atexit sched",
    "the process itself": "ctypes cffi mmap inspect gc traceback faulthandler tracemalloc",
    "code from elsewhere": "importlib imp runpy pkgutil zipimport pickle cPickle dill cloudpickle marshal",
}
"""What for, and the modules (with all below them) that a kernel has no use of."""

_FORBIDDEN = {module: use for use, modules in FORBIDDEN_MODULES.items() for module in modules.split()}
_CALLS = re.compile(
    r"sys\.(_getframe|_current_frames|settrace|setprofile|exit)"
    r"|os\.(_exit|abort|system|popen|fork\w*|exec\w+|spawn\w+|posix_spawn\w*|kill|killpg|dup2?|putenv|unsetenv"
    r"|pipe2?|read|write|memfd_create|nice|sched_\w+)"
    r"|torch\.(load|ops\.load_library|classes\.load_library)|time\.sleep|exit|quit"
)
_ENVIRONMENT_METHODS = {"update", "setdefault", "pop", "clear", "popitem"}
_DYNAMIC = {"exec", "eval", "compile", "__import__", "globals", "vars", "builtins.exec", "builtins.eval"}
_FLAGS = re.compile(
    r"torch\.(set_float32_matmul_precision|use_deterministic_algorithms|set_default_(dtype|device|tensor_type)"
    r"|set_num_(interop_)?threads|set_flush_denormal|set_deterministic_debug_mode"
    r"|backends\.[\w.]*(enable_\w+|set_\w+|flags|sdp_kernel|preferred_\w+))"
)
_STREAMS = re.compile(
    r"torch\.cuda\.((streams\.)?(Stream|ExternalStream)|stream|set_stream|CUDAGraph|graph|make_graphed_callables"
    r"|graphs\.\w+)"
)
_NATIVE_STREAMS = re.compile(
    r"\b(cudaStreamCreate\w*|getStreamFromPool|cudaStreamBeginCapture|cudaGraphLaunch)\b"
)
_NATIVE_CALLS = re.compile(
    r"\b(std::thread|std::async|pthread_create|dlopen|dlsym|popen|ptrace|mprotect|getenv|setenv|_exit"
    r"|cudaEventElapsedTime|cudaDeviceSetLimit|(?<![\w:.])(?:system|fork|exec[lv]\w*|socket)(?=\s*\())|/proc/self"
)
_NATIVE_LIBRARY = re.compile(
    r"\b((?:at|torch)::(?:matmul|mm|bmm|addmm|conv\w*|softmax|log_softmax|sum|mean|linear|relu|gelu|layer_norm"
    r"|einsum|cumsum|argmin|argmax|min|max|nn::functional::\w+)(?=\s*\()|cublas\w+|cudnn\w+|cub::\w+|thrust::\w+)"
)
# torch functions that make, move or describe tensors and compute nothing.
_NOT_COMPUTE = re.compile(
    r"torch\.(empty\w*|zeros\w*|ones\w*|full\w*|tensor|as_tensor|from_numpy|arange|device|dtype|Size|Tensor|is_\w+"
    r"|no_grad|inference_mode|set_grad_enabled|(autograd|cuda|utils|jit|ops)(\.\w+)+"
    r"|Generator|promote_types|result_type|finfo|iinfo|broadcast_shapes|nn\.Parameter|nn\.parameter\.\w+|_assert)"
)
_COMPUTE_METHODS = {"matmul", "mm", "bmm", "addmm", "baddbmm", "softmax", "log_softmax", "cumsum", "argmin"}


@RULES.rule(Severity.WARNING, "A module is imported that a kernel has no use of.")
def forbidden_import(program: Program) -> Iterator[Hit]:
    for node in program.nodes:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module or ''}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute) and program.is_module(node):
            names = [program.qualified(node)] if program.qualified(node).startswith("torch.") else []
        for name in names:
            if use := _forbidden_use(name):
                yield Hit(f"Leave out {name}: it reaches for {use}.", node)


def _forbidden_use(name: str) -> str | None:
    parts = name.split(".")
    prefixes = (".".join(parts[:length]) for length in (1, 2))
    return next((_FORBIDDEN[prefix] for prefix in prefixes if prefix in _FORBIDDEN), None)


@RULES.rule(
    Severity.WARNING, "A function is called that reaches for the process, other processes or stored objects."
)
def forbidden_call(program: Program) -> Iterator[Hit]:
    for call in program.calls:
        name = program.qualified(call.func)
        if _CALLS.fullmatch(name):
            yield Hit(f"Leave out {name}.", call)


@RULES.rule(
    Severity.WARNING, "Native source starts threads or processes, loads libraries or looks at the process."
)
def forbidden_native_call(program: Program) -> Iterator[Hit]:
    for node, text in program.native_strings:
        if match := _NATIVE_CALLS.search(text):
            yield Hit(f"Leave out {match[0]}.", node, match[0])


@RULES.rule(Severity.WARNING, "os.environ is changed.")
def environment_write(program: Program) -> Iterator[Hit]:
    for target in _targets(program):
        if isinstance(target, ast.Subscript) and program.qualified(target.value) == "os.environ":
            yield Hit("Leave the environment as it is.", target)
    for call in program.calls:
        owner, _, method = program.qualified(call.func).rpartition(".")
        if owner == "os.environ" and method in _ENVIRONMENT_METHODS:
            yield Hit("Leave the environment as it is.", call)


@RULES.rule(
    Severity.WARNING, "Code is made or looked up at run time: exec, eval, compile, __import__, globals."
)
def dynamic_code(program: Program) -> Iterator[Hit]:
    for call in program.calls:
        if program.qualified(call.func) in _DYNAMIC:
            yield Hit("Write the code out.", call)


@RULES.rule(Severity.WARNING, "An attribute of an imported module or class is replaced.")
def patched_attribute(program: Program) -> Iterator[Hit]:
    for target in _targets(program):
        owner = target.value if isinstance(target, ast.Attribute | ast.Subscript) else None
        if owner is None or not program.is_module(owner):
            continue
        name = program.qualified(target if isinstance(target, ast.Attribute) else owner)
        if not name.startswith(("torch.backends.", "os.environ")):
            yield Hit(f"Leave {name} as it is.", target)
    for call in program.calls:
        name = program.qualified(call.func)
        if name in {"setattr", "delattr"} and call.args and program.is_module(call.args[0]):
            yield Hit(f"Leave {program.qualified(call.args[0])} as it is.", call)


@RULES.rule(
    Severity.WARNING, "A process-wide setting of torch is changed: precision, threads, defaults, backends."
)
def global_flag(program: Program) -> Iterator[Hit]:
    for target in _targets(program):
        if program.qualified(target).startswith("torch.backends."):
            yield Hit(f"Leave {program.qualified(target)} as it is.", target)
    for call in program.calls:
        if _FLAGS.fullmatch(program.qualified(call.func)):
            yield Hit(f"Leave out {program.qualified(call.func)}.", call)


@RULES.rule(Severity.WARNING, "Work is put on another stream than the current one, or into a graph.")
def side_stream(program: Program) -> Iterator[Hit]:
    for call in program.calls:
        if _STREAMS.fullmatch(program.qualified(call.func)):
            yield Hit("Launch on the current stream.", call)
    for node, text in program.native_strings:
        if match := _NATIVE_STREAMS.search(text):
            yield Hit("Launch on at::cuda::getCurrentCUDAStream().", node, match[0])


@RULES.rule(Severity.NOTE, "A method of ModelNew computes with torch's own operators.")
def library_compute(program: Program) -> Iterator[Hit]:
    modules = _library_modules(program)
    for name, method in program.methods.items():
        for node in ast.walk(method) if name != "__init__" else ():
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                yield Hit("`@` is torch's matrix product.", node)
            elif isinstance(node, ast.Call) and (operator := _operator(program, node.func, modules)):
                yield Hit(f"{operator} is torch's own operator.", node)


def _operator(program: Program, function: ast.expr, modules: set[str]) -> str:
    """The torch operator that a call calls, or an empty text."""
    name = program.qualified(function)
    if name.startswith("torch.") and not _NOT_COMPUTE.fullmatch(name):
        return name
    owner, _, attribute = name.rpartition(".")
    if owner == "self":
        return name if attribute in modules else ""
    if (
        isinstance(function, ast.Attribute)
        and not program.is_module(function)
        and function.attr in _COMPUTE_METHODS
    ):
        of_extension = owner.partition(".")[0] in {"self", *program.module_level_names}
        return "" if of_extension else f"Tensor.{function.attr}"
    return ""


def _library_modules(program: Program) -> set[str]:
    """Attributes that a method of ModelNew sets to a torch.nn layer."""
    names: set[str] = set()
    for method in program.methods.values():
        for node in ast.walk(method):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                layer = program.qualified(node.value.func)
                if layer.startswith("torch.nn.") and "arameter" not in layer:
                    names |= {t.attr for t in node.targets if isinstance(t, ast.Attribute)}
    return names


@RULES.rule(
    Severity.NOTE, "Native source calls a library's kernels: cuBLAS, cuDNN, ATen operators, CUB, Thrust."
)
def native_library_compute(program: Program) -> Iterator[Hit]:
    for node, text in program.native_strings:
        if match := _NATIVE_LIBRARY.search(text):
            yield Hit(f"{match[0]} is a library's kernel.", node, match[0])


@RULES.rule(
    Severity.NOTE, "A method of ModelNew catches exceptions, so a failed kernel may be replaced quietly."
)
def exception_fallback(program: Program) -> Iterator[Hit]:
    for method in program.methods.values():
        for node in ast.walk(method):
            if isinstance(node, ast.Try | ast.TryStar) and node.handlers:
                yield Hit("Let errors of the kernel be seen.", node)


def _targets(program: Program) -> Iterator[ast.expr]:
    """What assignments and `del` statements write to."""
    for node in program.nodes:
        match node:
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                for target in targets:
                    yield from target.elts if isinstance(target, ast.Tuple | ast.List) else (target,)
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target) | ast.For(target=target):
                yield target
