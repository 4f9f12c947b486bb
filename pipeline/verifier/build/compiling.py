"""From a build request to files and commands, and one run of the compilers over them.

A plan holds the sources with headers and bindings added, and `build.ninja`. The semantics are those of
`torch.utils.cpp_extension.load_inline`: what is added before and after the sources, the flags and their
order. docs/reference/builds.md lists what differs. A `Compiler` runs a plan in a sandbox and says what its
end means.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernelproof.types.build import Build, BuildRequest, BuildState
from kernelproof.verifier.build.build_cache import LIBRARY, BuildCache
from kernelproof.verifier.build.compiler_output import clean_log, failures, killed, shorten
from kernelproof.verifier.build.slim_headers import BINDINGS, FOLDER, GLUE, Slim
from kernelproof.verifier.build.toolchain import HEADER_STUBS, Toolchain
from kernelproof.verifier.sandbox import Group, Limits, Outcome, read_result

NINJA = "build.ninja"
CPP, CPP_OBJECT = "main.cpp", "main.o"
CUDA, CUDA_OBJECT = "cuda.cu", "cuda.cuda.o"
MAX_FLAG_CHARS = 60_000
"""Flags of one kind together; the kernel refuses a shell command of more than 128 KiB."""

RESOURCE_USAGE = "-Xptxas=-v"
"""Has ptxas say how many registers, and how much memory, each kernel takes. It changes nothing else."""

SHIM = "absent"
"""Folder, in the scratch directory, of stand-ins for headers that this machine's toolkit lacks."""
_AHEAD = (f"-I{FOLDER}",)


class FlagError(ValueError):
    """A flag that cannot be put on a command line: the candidate's error, shown in its build log."""


@dataclass(frozen=True)
class BuildPlan:
    """Everything that is written for one build, and the commands it runs."""

    files: dict[str, str]
    """Path relative to the scratch directory to text; `build.ninja` among them."""
    commands: tuple[str, ...]
    objects: tuple[str, ...] = ()
    """What its compilers make of the sources, to be linked."""

    def linking(self) -> BuildPlan:
        """What is left to do when the objects are there: they must be put beside its files."""
        link = _Edge(LIBRARY, " ".join(self.objects), shlex.split(self.commands[-1]))
        return replace(self, files={**self.files, NINJA: _ninja([link])})

    def write(self, scratch: Path) -> None:
        """Write the files. Raises OSError when the disk is full."""
        for name, text in self.files.items():
            path = scratch / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8", "surrogatepass"))


def make_plan(request: BuildRequest, toolchain: Toolchain, slim: Slim | None = None) -> BuildPlan:
    """The files and commands of a build. The toolchain must not lack anything the request needs.

    With `slim` they are those of the slim route; if it has bindings, `GLUE` must be put beside the files.
    Raises FlagError for flags with unbalanced quotes or line breaks, or too many of them.
    """
    glued = slim is not None and slim.bindings
    files = _files(request, toolchain, slim)
    cpp = _cpp_compiler(request, toolchain, glued=glued)
    cuda = _cuda_compiler(request, toolchain, slim)
    edges = []
    if request.cpp_sources or not request.units:
        files[CPP] = _cpp_source(request)
        edges.append(_compiled(cpp, CPP, CPP_OBJECT))
    if request.cuda_sources:
        files[CUDA] = _cuda_source(request)
        # Slim bindings take two seconds, kernels ten: where the bindings fail, these need not be compiled.
        after = f" || {CPP_OBJECT}" if glued and edges else ""
        edges.append(replace(_compiled(cuda, CUDA, CUDA_OBJECT), after=after))
    for number, unit in enumerate(request.units):
        by_nvcc = unit in request.cuda_units
        edges.append(_compiled(cuda if by_nvcc else cpp, unit, f"unit{number}{'.cuda' if by_nvcc else ''}.o"))
    made = tuple(edge.output for edge in edges)
    objects = [*made, *([GLUE] if glued else [])]
    link = [str(toolchain.cxx), *objects, "-shared", *_link_flags(request, toolchain), "-o", LIBRARY]
    edges.append(_Edge(LIBRARY, " ".join(objects), link))
    files[NINJA] = _ninja(edges)
    return BuildPlan(files, tuple(shlex.join(edge.command) for edge in edges), made)


def _files(request: BuildRequest, toolchain: Toolchain, slim: Slim | None) -> dict[str, str]:
    files = {**(slim.files if slim is not None else {}), **request.files}
    if _shimmed(request, toolchain):
        for header in toolchain.absent_headers:
            files[f"{SHIM}/{header}"] = f"#pragma once\n{HEADER_STUBS[header]}"
    return files


def _cpp_compiler(request: BuildRequest, toolchain: Toolchain, *, glued: bool) -> list[str]:
    # By an option, so that the lines of the source keep their numbers in messages.
    ours = [*_AHEAD, "-include", f"{FOLDER}/{BINDINGS}"] if glued else []
    return [str(toolchain.cxx), *ours, *_cpp_flags(request, toolchain)]


def _cuda_compiler(request: BuildRequest, toolchain: Toolchain, slim: Slim | None) -> list[str]:
    """Empty where there is nothing for it."""
    if not request.cuda_sources and not request.cuda_units:
        return []
    ahead = _AHEAD if slim is not None and slim.cuda else ()
    return [str(toolchain.nvcc), *ahead, *_cuda_flags(request, toolchain)]


def needs_cuda(request: BuildRequest) -> bool:
    """True when the build takes CUDA headers and libraries."""
    return request.with_cuda or bool(request.cuda_sources) or bool(request.cuda_units)


def _builds_without_torch_cuda(toolchain: Toolchain) -> bool:
    """True for a CPU build of torch: CUDA code can be compiled against its headers, but never loaded."""
    return toolchain.torch_cuda is None


def _shimmed(request: BuildRequest, toolchain: Toolchain) -> bool:
    """True when stand-ins take the place of headers this machine lacks: only where nothing will be loaded."""
    return needs_cuda(request) and _builds_without_torch_cuda(toolchain) and bool(toolchain.absent_headers)


def _cpp_source(request: BuildRequest) -> str:
    added = [] if request.no_implicit_headers else ["#include <torch/extension.h>"]
    parts = [*added, *request.cpp_sources]
    if request.functions is not None:
        parts += ["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {"]
        parts += [_binding(request, name, doc) for name, doc in request.functions.items()]
        parts += ["}"]
    return "\n".join(parts)


def _binding(request: BuildRequest, name: str, doc: str) -> str:
    callee = f"torch::wrap_pybind_function({name})" if request.with_pytorch_error_handling else name
    return f'm.def("{name}", {callee}, "{doc}");'


def _cuda_source(request: BuildRequest) -> str:
    headers = ["torch/types.h", "cuda.h", "cuda_runtime.h"]
    added = [] if request.no_implicit_headers else [f"#include <{header}>" for header in headers]
    return "\n".join([*added, *request.cuda_sources])


def _common_flags(request: BuildRequest, toolchain: Toolchain) -> list[str]:
    """What the C++ compiler and nvcc both get: module name, then the caller's and the system's includes."""
    system = list(toolchain.torch_includes)
    flags = [f"-DTORCH_EXTENSION_NAME={request.name}", "-DTORCH_API_INCLUDE_EXTENSION_H"]
    if needs_cuda(request):
        include = f"{toolchain.cuda_home}/include"
        system += [include] if include != "/usr/include" else []
        if _builds_without_torch_cuda(toolchain):
            # Such a torch ships the CUDA headers but neither the macro file its build generates nor
            # the handles of libraries that this machine may lack.
            flags.append("-DC10_CUDA_NO_CMAKE_CONFIGURE_FILE")
    flags += [f"-I{path}" for path in _words("extra_include_paths", request.extra_include_paths, split=False)]
    for path in [*system, toolchain.python_include]:
        flags += ["-isystem", path]
    if _shimmed(request, toolchain):
        flags += ["-isystem", SHIM]
    return flags


def _cpp_flags(request: BuildRequest, toolchain: Toolchain) -> list[str]:
    own = _words("extra_cflags", request.extra_cflags)
    return [*_common_flags(request, toolchain), "-fPIC", f"-std={toolchain.cxx_standard}", *own]


def _cuda_flags(request: BuildRequest, toolchain: Toolchain) -> list[str]:
    own = _words("extra_cuda_cflags", request.extra_cuda_cflags)
    flags = ["-ccbin", toolchain.ccbin] if toolchain.ccbin else []
    flags += [*_common_flags(request, toolchain), *toolchain.nvcc_defaults]
    if not any("arch" in word for word in own if "TORCH_EXTENSION_NAME" not in word):
        flags += toolchain.gencode
    flags += ["--compiler-options", "-fPIC", RESOURCE_USAGE]
    flags += [_without_native(word, toolchain) for word in own]
    if not any(word.startswith("-std=") for word in own):
        flags.append(f"-std={toolchain.cxx_standard}")
    return flags


def _without_native(word: str, toolchain: Toolchain) -> str:
    """`-arch=native` names the GPU compiled for: the sandbox of a build has no GPU that nvcc could ask."""
    name, _, value = word.partition("=")
    if name in ("-arch", "--gpu-architecture") and value == "native":
        return f"{name}=sm_{toolchain.architecture.replace('.', '')}"
    return word


def _link_flags(request: BuildRequest, toolchain: Toolchain) -> list[str]:
    """The caller's flags, then torch's libraries. Without a CUDA torch its CUDA symbols stay undefined."""
    cuda = needs_cuda(request)
    torch_cuda = cuda and not _builds_without_torch_cuda(toolchain)
    flags = _words("extra_ldflags", request.extra_ldflags)
    flags += [
        f"-L{toolchain.torch_root}/lib",
        "-lc10",
        *(["-lc10_cuda"] if torch_cuda else []),
        "-ltorch_cpu",
    ]
    flags += [*(["-ltorch_cuda"] if torch_cuda else []), "-ltorch", "-ltorch_python"]
    if cuda:
        flags += [f"-L{_cuda_library_folder(toolchain)}", "-lcudart"]
    return flags


def _cuda_library_folder(toolchain: Toolchain) -> str:
    usual = Path(str(toolchain.cuda_home), "lib64")
    other = usual.with_name("lib")
    return str(other if other.exists() and not usual.exists() else usual)


def _words(kind: str, flags: tuple[str, ...], *, split: bool = True) -> list[str]:
    """Flags as single arguments. A shell would split `-O3 -g` and take quotes off, so do the same here;
    nothing else that a shell does is done for a candidate."""
    if sum(map(len, flags)) > MAX_FLAG_CHARS:
        raise FlagError(f"{kind}: more than {MAX_FLAG_CHARS} characters")
    if any("\ud800" <= character <= "\udfff" for flag in flags for character in flag):
        raise FlagError(f"{kind}: a flag holds half a character, which no encoding has: {flags!a:.500}")
    try:
        words = [word for flag in flags for word in (shlex.split(flag) if split else [flag.strip()])]
    except ValueError as error:
        raise FlagError(f"{kind}: {error}: {' '.join(flags)[:500]}") from None
    for word in words:
        if any(character in word for character in "\n\r\0"):
            raise FlagError(f"{kind}: a flag holds a line break or a null character: {word[:200]!r}")
    return words


@dataclass(frozen=True)
class _Edge:
    """One step: the file it makes, what from, and how."""

    output: str
    inputs: str
    command: list[str]
    after: str = ""
    """What has to be made before, though nothing of it is read."""


def _compiled(compiler: list[str], source: str, output: str) -> _Edge:
    return _Edge(output, source, [*compiler, "-c", source, "-o", output])


_CAPTURED = (
    " >.step{0} 2>&1; s=$?; cat .step{0}; [ $s -le 128 ] || echo step {0}: ended by signal $((s - 128)); "
    "exit $((s > 0))"
)
"""ninja waits until nobody can write into the pipe of a step: so a process that a compiler leaves behind gets
a file, and does not hold up the build. `clean_log` removes this again from the commands that ninja shows."""


def _ninja(edges: list[_Edge]) -> str:
    lines = ["ninja_required_version = 1.3", ""]
    for number, edge in enumerate(edges):
        command = (shlex.join(edge.command) + _CAPTURED.format(number)).replace("$", "$$")
        verb = "link" if edge.output == LIBRARY else "compile"
        lines += [f"rule step{number}", f"  command = {command}", f"  description = {verb} {edge.output}"]
        lines += [f"build {edge.output}: step{number} {edge.inputs}{edge.after}", ""]
    return "\n".join([*lines, f"default {LIBRARY}", ""])


MEMORY_BYTES = 8 << 30
LIBRARY_BYTES = 1 << 30
"""Of a library, and of an object."""
SCRATCH_BYTES = 4 << 30
OUTPUT_BYTES = 2 << 20
PROCESSES = 128
"""Limits of one compilation; docs/reference/builds.md lists them."""

_DISK_RESERVE_BYTES = 64 << 20

_OUT_OF_MEMORY = re.compile(
    r"virtual memory exhausted|out of memory allocating|std::bad_alloc|[Cc]annot allocate memory"
)
_DISK_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_ABSENT_FROM_TOOLKIT = re.compile(
    r"fatal error: (?P<header>(?:cublas(?:_v2|_api|Lt|Xt)?|cusparse(?:_v2)?|cusolver(?:Dn|Sp|Mg|Rf|_common)"
    r"|curand(?:_kernel)?|cufft(?:w|Xt)?|cudnn|nvrtc|nccl)\.h): No such file"
    r'|identifier "(?P<name>cu(?:blas|sparse|solver)\w+)" is undefined'
)
"""Other names are no toolkit's: a candidate may include what it likes."""


@dataclass(frozen=True)
class Compiled:
    """What one run of the compilers yielded."""

    state: BuildState
    log: str
    wall_s: float
    cpu_s: float
    files: Mapping[str, bytes] = field(default_factory=dict)
    """What was to be made, by name, when the state is OK."""
    lost: bool = False
    """Whether a compiler was killed from outside, or its log says so."""
    proven: bool = False
    """Whether that is more than words, which a source can have a compiler write."""

    @property
    def library(self) -> bytes | None:
        """There when the state is OK."""
        return self.files.get(LIBRARY)

    def after(self, first: Compiled) -> Compiled:
        """Both runs as one."""
        log = "\n".join(filter(None, (first.log, self.log)))
        return replace(self, log=log, wall_s=first.wall_s + self.wall_s, cpu_s=first.cpu_s + self.cpu_s)

    def build(self, key: str, name: str, plan: BuildPlan) -> Build:
        """The record of it."""
        return Build(
            key=key,
            state=self.state,
            name=name,
            duration_s=self.wall_s,
            cpu_s=self.cpu_s,
            commands=plan.commands,
            log=self.log,
        )


class NoGlue(Exception):
    """The glue does not compile with this torch: no build can have it."""


class Compiler:
    """Runs ninja in a sandbox that sees compilers and torch's headers, nothing else. Thread-safe."""

    def __init__(
        self, toolchain: Toolchain, cache: BuildCache, group: Group, *, jobs: int, unsafe: bool
    ) -> None:
        self.toolchain = toolchain
        self._cache, self._group, self._jobs, self._unsafe = cache, group, jobs, unsafe

    def compile(
        self, plan: BuildPlan, glue: Future[bytes | None] | None, seconds: float, memory_bytes: int
    ) -> Compiled:
        """The library of a plan. `glue`: what is linked in; only the linker waits for it.

        Raises NoGlue, OSError or MachineError when this machine fails.
        """
        if glue is None:
            return self._make(plan, {}, (LIBRARY,), seconds, memory_bytes)
        if glue.done():
            return self._make(plan, {GLUE: _bytes_of(glue)}, (LIBRARY,), seconds, memory_bytes)
        first = self._make(plan, {}, plan.objects, seconds, memory_bytes)
        if first.state is not BuildState.OK:
            return first
        # Linked in another folder: nothing is written where the compilers of a candidate have been.
        given = {**first.files, GLUE: _bytes_of(glue)}
        left = max(1.0, seconds - first.wall_s)
        return self._make(plan.linking(), given, (LIBRARY,), left, memory_bytes).after(first)

    def _make(
        self,
        plan: BuildPlan,
        extra_files: Mapping[str, bytes],
        wanted: Sequence[str],
        seconds: float,
        memory_bytes: int,
    ) -> Compiled:
        """The files `wanted` of a plan, with those `extra_files` beside its own."""
        with self._cache.scratch() as scratch:
            plan.write(scratch)
            for name, data in extra_files.items():
                (scratch / name).write_bytes(data)
            outcome = self._run(scratch, wanted, seconds, memory_bytes)
            log = clean_log(outcome.stdout + outcome.stderr, scratch)
            state, reason = _state_of(outcome, log, scratch, self.toolchain)
            made = {}
            if state is BuildState.OK:
                try:
                    made = {name: read_result(scratch, name, LIBRARY_BYTES) for name in wanted}
                except (OSError, ValueError) as error:
                    state, reason = BuildState.ERROR, f"The compilers left no usable library: {error}"
        said = shorten(f"{reason}\n{log}") if reason else log
        lost = outcome.state == "lost" or (state is BuildState.INFRASTRUCTURE and bool(killed(log)))
        proven = outcome.state == "lost" or outcome.shortage
        return Compiled(state, said, outcome.wall_s, outcome.cpu_s, made, lost, proven)

    def _run(self, scratch: Path, wanted: Sequence[str], seconds: float, memory_bytes: int) -> Outcome:
        # Without -k ninja stops at the first failure, and which of two failing files that is depends on the
        # compiler that finishes first: the log would differ from run to run.
        command = (str(self.toolchain.ninja), "-k", "0", "-j", str(self._jobs), *wanted)
        limits = Limits(
            wall_s=seconds,
            cpu_s=seconds * self._jobs,
            memory_bytes=memory_bytes,
            processes=PROCESSES,
            file_bytes=LIBRARY_BYTES,
            output_bytes=OUTPUT_BYTES,
            scratch_bytes=SCRATCH_BYTES,
            address_space_bytes=memory_bytes,
        )
        return self._group.run(self.toolchain.job(command, scratch, limits), unsafe=self._unsafe)


def _bytes_of(glue: Future[bytes | None]) -> bytes:
    found = glue.result()
    if found is None:
        raise NoGlue
    return found


def _state_of(outcome: Outcome, log: str, scratch: Path, toolchain: Toolchain) -> tuple[BuildState, str]:
    """The state an outcome means; a first line for the log where the compilers' own words do not say it."""
    if outcome.state == "ok":
        return BuildState.OK, ""
    if outcome.state in ("timeout", "cpu", "memory", "output"):
        return BuildState.TIMEOUT, f"Stopped after {outcome.wall_s:.0f} s: {outcome.reason or outcome.state}."
    if outcome.state != "error":
        detail = outcome.reason or outcome.signal or ""
        return BuildState.INFRASTRUCTURE, f"The build's worker was lost ({outcome.state} {detail})."
    if _DISK_FULL.search(log):
        if shutil.disk_usage(scratch).free < _DISK_RESERVE_BYTES:
            return BuildState.INFRASTRUCTURE, "The disk that holds temporary files is full."
        return BuildState.TIMEOUT, f"The compilation wrote more than {SCRATCH_BYTES >> 30} GiB."
    if line := killed(log):
        if outcome.used_it_up:
            return BuildState.TIMEOUT, f"The compilers used up this machine's memory: {line}"
        return BuildState.INFRASTRUCTURE, f"A compiler was killed from outside: {line}"
    if _OUT_OF_MEMORY.search(log):
        return BuildState.TIMEOUT, "The compilers ran out of the memory a build may use."
    absent = _ABSENT_FROM_TOOLKIT.search(log) if toolchain.absent_headers else None
    if absent:
        what = absent["header"] or absent["name"]
        return BuildState.UNAVAILABLE, f"This machine's CUDA toolkit lacks {what}: install the full toolkit."
    if not failures(log) and "ninja: " not in log:
        why = f"{toolchain.ninja} does not run: pip install --force-reinstall ninja."
        return BuildState.INFRASTRUCTURE, why
    return BuildState.ERROR, ""
