"""Whose kernel one is: by its name, and by what shows that the candidate made it
(docs/rationale/kernels.md).

A kernel that nothing shows to be the candidate's is not its own. A library compiles kernels while it runs
too, under names that no list holds.

`kernel_name` reads the names of C++ kernels as a profiler gives them: demangled, a template's with the type
that it returns.

`holds_kernel` looks in the files of the libraries that torch brings. Libraries that launch through CUDA's
runtime register their kernels by mangled names, which stand in the files as text, also where the code is
compressed. A name that no pattern knows is looked for there. One that is in none of them costs a second or
two, so patterns come first, and few are looked for: a report may have any.
"""

from __future__ import annotations

import ast
import ctypes
import mmap
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from kernelproof.types import Build, BuildState, Origin
from kernelproof.verifier.contestant.profiling import MAX_NAME
from kernelproof.verifier.referee.environment import loaded_files

_ANONYMOUS = "(anonymous namespace)"
_WORD = "\0"
"""Stands for `_ANONYMOUS` while brackets are counted: it has some of its own."""


class KernelName(NamedTuple):
    """`std::enable_if<!(false), void>::type internal::gemvx::kernel<int>(int)`, taken apart."""

    plain: str
    """From the name on, no return type and no anonymous namespace: `internal::gemvx::kernel<int>(int)`."""
    path: tuple[str, ...]
    """What a mangled name has in one piece: `("internal", "gemvx", "kernel")`; what follows the last template
    or anonymous namespace before the name itself."""
    whole: bool
    """Whether nothing stands before the path: no such template or namespace."""

    @property
    def base(self) -> str:
        """The last identifier: `kernel`."""
        return self.path[-1] if self.path else ""


def kernel_name(name: str) -> KernelName:
    """The parts of a name; one that is cut short or no C++ name at all gives what there is of it."""
    text = name.replace(_ANONYMOUS, _WORD)
    start, end, outer = _head(text)
    last = [_WORD if part.endswith("<>") else part for part in outer.removesuffix("<>").split("::")]
    after = max((at for at, part in enumerate(last[:-1]) if part == _WORD), default=-1)
    path = tuple(part for part in last[after + 1 :] if re.fullmatch(r"\w+", part))
    plain = text[start:end].replace(f"{_WORD}::", "") + text[end:]
    return KernelName(plain.replace(_WORD, _ANONYMOUS), path, whole=len(path) == len(last))


def _head(text: str) -> tuple[int, int, str]:
    """Where the name begins and its parameters do, and the name with `<>` for each list of template
    arguments."""
    open_brackets: list[str] = []
    start, outer = 0, ""
    for at, sign in enumerate(text):
        if sign == "(" and not open_brackets:
            return start, at, outer
        if sign in "<(":
            open_brackets.append(sign)
        elif sign == ")" and "(" in open_brackets:
            while open_brackets.pop() != "(":
                pass
        elif sign == ">" and open_brackets[-1:] == ["<"]:
            open_brackets.pop()
            outer += "" if open_brackets else "<>"
        elif not open_brackets:
            outer += sign
            if sign == " ":
                start, outer = at + 1, ""
    return start, len(text), outer


_KERNELS = re.compile(r"lib(?:cublas|cudnn|cufft|cusolver|cusparse|curand|nccl|torch_cuda)\w*\.so(?:\.|$)")
"""Libraries with kernels in them."""
_MOST_HITS = 20_000
"""Most mangled names that one lookup takes apart: a few tenths of a second."""
_SHORTEST = 6
"""Bytes of a piece that may stand anywhere in a mangled name."""
_LONGEST = 4096
"""Bytes of a mangled name."""


@lru_cache(maxsize=1024)
def holds_kernel(name: str, files: tuple[Path, ...] | None = None) -> bool:
    """Whether one of these libraries has a kernel of exactly this demangled name, up to MAX_NAME characters.

    `files`: those beside the CUDA libraries that this process has loaded. Names without template arguments or
    parameters are not looked up: C names, as compilers at run time give them, may be anybody's.
    """
    known = kernel_name(name)
    if not re.search("[<(]", name) or not known.path:
        return False
    symbols = _symbols(_pieces(known), _loaded() if files is None else files)
    return any(_demangled(symbol)[:MAX_NAME] == name for symbol in islice(symbols, _MOST_HITS))


def _pieces(known: KernelName) -> list[bytes]:
    """What its mangled name must hold one of, by the rules of the Itanium C++ ABI; none if too many do."""
    piece = "".join(f"{len(part)}{part}" for part in known.path).encode()
    if not known.whole:
        return [piece] if len(piece) >= _SHORTEST else []
    return [b"_ZN" + piece] if len(known.path) > 1 else [b"_Z" + piece, b"_ZL" + piece]


@lru_cache(maxsize=1)
def _loaded() -> tuple[Path, ...]:
    """Files with kernels, in the folders of those that are loaded: some are loaded only when used."""
    folders = {file.parent for file in loaded_files() if _KERNELS.match(file.name)}
    found = {f.resolve() for folder in folders for f in folder.iterdir() if _KERNELS.match(f.name)}
    return tuple(sorted(found, key=lambda file: ("cublas" not in file.name, file)))


@lru_cache(maxsize=1)
def vendors() -> tuple[Path, ...]:
    """The loaded files that torch's own kernels are not in."""
    return tuple(file for file in _loaded() if not file.name.startswith("libtorch"))


def _symbols(pieces: Sequence[bytes], files: Iterable[Path]) -> Iterator[bytes]:
    """Mangled names in the files with one of these pieces in them."""
    for file in files:
        try:
            with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as text:
                for piece in pieces:
                    yield from _symbols_of(text, piece)
        except (OSError, ValueError):  # gone, or empty
            continue


def _symbols_of(text: mmap.mmap, piece: bytes) -> Iterator[bytes]:
    at = -1
    while (at := text.find(piece, at + 1)) >= 0:
        begins = text.rfind(b"\0", max(0, at - _LONGEST), at) + 1
        ends = text.find(b"\0", at, at + _LONGEST)
        if text[begins : begins + 2] == b"_Z" and ends > 0:
            yield text[begins:ends]


@lru_cache(maxsize=1)
def _library() -> tuple[ctypes.CDLL, ctypes.CDLL]:
    """The demangler that torch's profiler uses too, and what frees its results."""
    runtime, libc = ctypes.CDLL("libstdc++.so.6"), ctypes.CDLL(None)
    runtime.__cxa_demangle.argtypes = [ctypes.c_char_p] + [ctypes.c_void_p] * 3
    runtime.__cxa_demangle.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    return runtime, libc


def _demangled(symbol: bytes) -> str:
    runtime, libc = _library()
    place = runtime.__cxa_demangle(symbol, None, None, None)
    if not place:
        return ""
    try:
        return ctypes.string_at(place).decode(errors="replace")
    finally:
        libc.free(place)


IMAGE_BYTES = 64 << 20
"""Most bytes that are read of a candidate's libraries together."""

_UNMISTAKABLE = re.compile(
    r"^(?:at|at_cuda_detail|c10|cublas\w*|cusparse\w*|cusolver\w*|cufft\w*|cudnn\w*|cutlass\w*|cute|cask\w*"
    r"|magma\w*|fbgemm\w*|pytorch_flash|PyTorchMemEffAttention|nccl\w*|internal::gemvx)::"
    r"|^(?:ncclDevKernel|ncclKernel|nvjet_|cudnn_generated_|cutlass_\d|fmha_cutlass[FB]_|xmma_"
    r"|sm\d+_xmma_|sm\d+_\w*\d+x\d+)"
    r"|^(?:maxwell|volta|turing|ampere|hopper|blackwell)_\w*\d+x\d+"
)
"""Names in a library's namespace, or as only its generators make them (architecture and tile in one)."""

_USUAL = re.compile(
    r"^(?:gemv\w*|gemm[A-Z]\w*|gemmk1\w*|gemm_kernel2x2\w*|(?:cublas)?splitKreduce\w*|dot_kernel|reduce_1Block_kernel"
    r"|(?:asum|nrm2|scal|axpy|ger|rot|swap|iamax)_kernel\w*|(?:trsm|trmm|syrk|potrf|getrf|geqrf|laswp)\w*"
    r"|softmax_warp_\w*|cunn_\w*|(?:(?:vectorized|unrolled|legacy)_)?elementwise_kernel\w*|multi_tensor_apply\w*"
    r"|(?:im|ex)plicit_convolve\w*|precomputed_convolve\w*|convolve_\w*|\w*[wW]inograd\w*|fft2d_\w*"
    r"|(?:vector|regular|multi_bluestein)_fft\w*|n(?:chw|hwc)To\w*|n(?:chw|hwc)AddPadding\w*"
    r"|op_(?:generic_)?tensor_kernel\w*|bn_[fb]w_\w*|RNN_block\w*|persistRNN\w*|elemWiseRNNcell\w*"
    r"|(?:LSTM|GRU)_elementWise\w*|(?:dgrad|wgrad|fprop)\w*|fmha\w*|flash_(?:fwd|bwd)\w*|spin_kernel)$"
)
"""Base names of library kernels without a namespace, all of them C++ and so shown with parameters. A
candidate may use one too: its own library decides."""

_TEMPLATES = re.compile(r"(?:^|::|<)(?:cub|thrust)::|\bCUB_\d")
"""Header libraries: a candidate that compiles them into its extension runs its own build."""

_TYPES = re.compile(r"\b(?:loadstore_modifier_t|real_complex_args_t|RealComplex_st)\b")
"""Types of cuFFT's, whose kernels are compiled or linked when they are first used."""

_MOVES = re.compile(
    r"FillFunctor|direct_copy_kernel|(?:bfloat16|float16|float8\w*)_copy_kernel|arange_cuda_out"
)
_MEMORY = re.compile(r"^Mem(?:cpy|set)\b")
_INDUCTOR = re.compile(r"^triton_")
_ASKS_INDUCTOR = re.compile(
    r"\btorch\.compile\b|\bfrom torch import [^\n]*\bcompile\b|\b_(?:inductor|dynamo)\b|\baoti?_compile"
)
"""A program that has `torch.compile` write kernels: those with just its names are not the program's then,
though it holds kernels of such names too."""
_INDUCTORS_OWN = re.compile(r"^triton_(?:(?:poi|red|per|tem|spl|for)_fused_|\d*$)")
"""As `torch.compile` names kernels, and as it names all of them when it is told not to tell them apart."""
_OF_INDUCTOR = re.compile(r"torchinductor|/torch/_inductor/")
_INSTALLED = re.compile(r"/(?:site|dist)-packages/")
_OF_THE_LANGUAGE = re.compile(r"/triton/language/")
_OF_TORCH = re.compile(r"^(?:reduction_\w+_kernel|\w+_vectorized\d+_kernel|fused_\w+|kernel_?\d*|func\w*)$")
"""As torch names what it compiles while it runs (jiterator, TorchScript's fusers): such a name counts as the
candidate's only where the whole of it stands in its source."""
_MANGLED = re.compile(r"_ZN?(?:12_GLOBAL__N_1)?(\d+)(\w+)")

_COMPILES = re.compile(
    r"nvrtc|cu(?:Module|Library)Load|cuLink(?:Create|Add)|cudaLibraryLoad|_compile_kernel|SourceModule|jiterator"
    r"|RawKernel|RawModule|ElementwiseKernel|ReductionKernel|\bcupyx?\b|\bnumba\b|\btriton\b|\bcute\.(?:jit|kernel)"
    r"|\btilelang\b|\bnvcc\b|\bptxas\b|\bCUDAExtension\b|\bcuda\.(?:core|bindings)\b",
)
"""Ways of a Python program to kernels that no build of ours made."""
_LOADS = (b"nvrtcCompileProgram", b"cuModuleLoad", b"cuLibraryLoad", b"cudaLibraryLoad")
"""The same in a library."""
_SWITCHES_RECORDING = (b"enableRecordFunction", b"set_record_function_tls")
"""What a library of the candidate's imports in order to keep torch's operators out of every profile."""
_SHORTEST_PIECE = 4
_LINE = 12
"""Characters of a line that says whose a text is."""


@dataclass(frozen=True)
class Evidence:
    """What shows that a kernel is the candidate's: the libraries that it had built, and its source."""

    images: Sequence[bytes] = ()
    source: str = ""
    partial: bool = False
    """Whether something that was built is not among the images: it is gone, or too large."""
    files: tuple[Path, ...] = ()
    """Where the images are from."""
    written_name: Callable[[str], str] = str
    """The name that a source of this backend gives a kernel, by the name of the compiled one."""

    @cached_property
    def text(self) -> str:
        """The source without comments: its words, and the texts in it. All of it where it is no Python."""
        return self._words_without(without=frozenset())

    def _words_without(self, *, without: frozenset[int]) -> str:
        """Those of the text's nodes whose `id` is not among these."""
        if self._tree is None:
            return self.source
        nodes = (node for node in ast.walk(self._tree) if id(node) not in without)
        return "\n".join(word for node in nodes for word in _words(node))

    @cached_property
    def _tree(self) -> ast.Module | None:
        try:
            return ast.parse(self.source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    @cached_property
    def compiles(self) -> bool:
        """Whether the candidate has a way of its own to kernels, beside the builds: NVRTC, say."""
        return bool(_COMPILES.search(self.text)) or any(
            call in image for image in self.images for call in _LOADS
        )

    @cached_property
    def switches_recording(self) -> bool:
        """Whether a library that was built has torch record no operators. No kernel needs that."""
        return any(call in image for image in self.images for call in _SWITCHES_RECORDING)

    @cached_property
    def asks_inductor(self) -> bool:
        """Whether the candidate has `torch.compile` write kernels. A docstring asks for nothing."""
        nodes = ast.walk(self._tree) if self._tree is not None else ()
        remarks = frozenset(
            id(node.value)
            for node in nodes
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        )
        return bool(_ASKS_INDUCTOR.search(self._words_without(without=remarks)))

    def holds(self, name: str) -> bool:
        """Whether a library that was built has this kernel."""
        base = kernel_name(name).base
        return any(_holds(image, base) or _holds_mangled(image, name) for image in self.images)

    def alone_holds(self, name: str) -> bool:
        """Whether a library that was built has exactly this kernel, parameters included, and none of torch's
        has: torch's headers hold templates, such as `at::native::vectorized_elementwise_kernel`."""
        return bool(self.files) and holds_kernel(name, self.files) and not holds_kernel(name)

    def names(self, base: str) -> bool:
        """Whether the source gives a kernel this name: as a word, or put together of two, and numbers."""
        if re.search(rf"(?<!\w){re.escape(base)}(?!\w)", self.text):
            return True
        if not _OF_TORCH.match(base) and _put_together(base, self.text):
            return True
        written = self.written_name(base)
        return written != base and written in self._functions

    def holds_lines_of(self, text: str) -> bool:
        """Whether a line of a Python kernel's text, decorators and heads of functions apart, stands in the
        source or in a text in it; a name alone does not. A text without lines of some length says nothing."""
        lines = [line.strip() for line in text.splitlines()]
        telling = [each for each in lines if len(each) >= _LINE and not each.startswith(("@", "def ", "#"))]
        return not telling or any(each in self.source or each in self.text for each in telling)

    @cached_property
    def _functions(self) -> frozenset[str]:
        """Names of the functions that the source defines."""
        nodes = ast.walk(self._tree) if self._tree is not None else ()
        return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef))


def evidence(builds: Sequence[Build], source: str, written_name: Callable[[str], str] = str) -> Evidence:
    """What the builds that worked left, IMAGE_BYTES of it at most, and the candidate's source."""
    images: list[bytes] = []
    left, partial = IMAGE_BYTES, False
    worked = [Path(b.library) for b in builds if b.state is BuildState.OK and b.library is not None]
    files = tuple(dict.fromkeys(worked))
    for path in files:
        try:
            with path.open("rb") as file:
                images.append(file.read(left))
                partial = partial or bool(file.read(1))
        except OSError:  # the cache was cleared meanwhile
            partial = True
            continue
        left -= len(images[-1])
    return Evidence(tuple(images), source, partial, files, written_name)


_NOTHING = Evidence()


def origin(name: str, shown: Evidence = _NOTHING, *, by_torch: bool = False) -> Origin:
    """Whose kernel this is: by its name as a profiler gives it, and by what shows it to be the candidate's.

    `by_torch`: an operator of torch launched it. That settles it: ATen compiles some of its kernels while it
    runs, and calls libraries whose kernels have any name.
    """
    known = kernel_name(name)
    if _MEMORY.match(name):
        return Origin.COPY
    if by_torch:
        return of_library(name)
    if _UNMISTAKABLE.match(known.plain) or _of_namespace(name):
        return Origin.OWN if shown.alone_holds(name) else of_library(name)
    if _INDUCTORS_OWN.match(name) and shown.asks_inductor:
        return Origin.INDUCTOR
    usual = _usual(name)
    if shown.holds(name):
        return of_library(name) if usual and _sold(name) else Origin.OWN
    if usual or _TEMPLATES.search(known.plain) or _TYPES.search(name):
        return of_library(name)
    if shown.compiles and known.base and shown.names(known.base):
        return Origin.JIT
    if _INDUCTOR.match(name):
        return Origin.INDUCTOR
    return Origin.JIT if shown.partial else Origin.UNKNOWN


def author(file: str) -> Origin | None:
    """The author of a kernel by its Python file: `torch.compile`, or an installed package. None: the
    candidate, as far as the file shows.

    Triton's own language (`tl.softmax`) has functions for kernels to call, and no kernel. A candidate may
    give a kernel such a name."""
    if _OF_INDUCTOR.search(file):
        return Origin.INDUCTOR
    return Origin.LIBRARY if _INSTALLED.search(file) and not _OF_THE_LANGUAGE.search(file) else None


def of_library(name: str) -> Origin:
    """What a library's kernel does: it computes, or it copies and fills."""
    return Origin.COPY if _MOVES.search(name) else Origin.LIBRARY


def _usual(name: str) -> bool:
    return bool(re.search("[<(]", name) and _USUAL.match(kernel_name(name).base))


def _sold(name: str) -> bool:
    """Whether a vendor's library has exactly this kernel, arguments and parameters included: then the kernel
    that the candidate built beside it is there for its name."""
    return not _TEMPLATES.search(name) and holds_kernel(name, vendors())


def _of_namespace(name: str) -> bool:
    """Whether a name that was too long to be taken apart begins with a library's namespace."""
    mangled = _MANGLED.match(name)
    return mangled is not None and bool(_UNMISTAKABLE.match(mangled[2][: int(mangled[1][:4])] + "::"))


def _holds(image: bytes, base: str) -> bool:
    """Whether a library holds this kernel: mangled (length, then name) or, `extern "C"`, as it is."""
    if not base:
        return False
    plain = base.encode()
    return b"%d%s" % (len(plain), plain) in image or b"\0%s\0" % plain in image


def _holds_mangled(image: bytes, name: str) -> bool:
    return name.startswith("_Z") and b"\0" + name.encode() in image


def _words(node: ast.AST) -> tuple[str, ...]:
    match node:
        case ast.Constant(value=str(text)):
            return (text,)
        case ast.Constant(value=bytes(raw)):
            return (raw.decode("latin-1"),)
        case ast.Attribute():  # `cuda.core` is one word here
            return (ast.unparse(node),) if _dotted(node) else (node.attr,)
        case ast.Name(id=word) | ast.FunctionDef(name=word) | ast.ClassDef(name=word):
            return (word,)
        case ast.Import() | ast.ImportFrom():
            return (ast.unparse(node),)
    return ()


def _dotted(node: ast.Attribute) -> bool:
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    return isinstance(inner, ast.Name)


def _put_together(base: str, text: str) -> bool:
    """Whether a name is two pieces of the text, with numbers before, between and behind them."""
    name = re.sub(r"^[\d_]+|[\d_]+$", "", base)
    if len(name) >= _SHORTEST_PIECE and name in text:
        return True
    cuts = range(_SHORTEST_PIECE, len(name) - _SHORTEST_PIECE + 1)
    return any(
        name[:cut] in text and re.sub(r"^[\d_]+", "", name[cut:]) in text
        for cut in cuts
        if len(re.sub(r"^[\d_]+", "", name[cut:])) >= _SHORTEST_PIECE
    )
