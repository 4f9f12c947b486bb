"""What a candidate's calls ask for, as build requests. Standard library only.

`load_inline` and `load` read the calls alike in the contestant and in the light runner, which has no torch.
`request_of` turns a `CppExtension` or `CUDAExtension` into what `BuildExtension` would compile.

`with_own_files` adds the files of a candidate's own that an extension is made of: its sources, and the
headers that these include.

The compilers run elsewhere and see nothing that the candidate wrote, so such files are sent along. They are
found as a preprocessor finds them, but that every branch is followed. Standard library only.

Names that a candidate draws anew each time (`mkdtemp`) must not reach the build, or no build would ever be
in the cache: sources and folders are numbered, but for those that an `#include` spells out.
"""

from __future__ import annotations

import os
import re
import shlex
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    cuda_sources: str | Sequence[str] | None = None,
    sycl_sources: str | Sequence[str] | None = None,
    functions: str | Sequence[str] | Mapping[str, str] | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
) -> tuple[dict[str, Any], str | None]:
    """The request of `torch.utils.cpp_extension.load_inline` with these arguments, which are torch's, and the
    folder where its sources would lie.

    Where the files go and how much is printed is ours. Raises RuntimeError for what is not supported.
    """
    if sycl_sources or with_sycl:
        raise RuntimeError("SYCL sources are not supported here")
    cuda = _texts(cuda_sources)
    request = {
        "name": name,
        "cpp_sources": _texts(cpp_sources),
        "cuda_sources": cuda,
        "functions": _functions(functions),
        "extra_cflags": list(extra_cflags or ()),
        "extra_cuda_cflags": list(extra_cuda_cflags or ()),
        "extra_ldflags": list(extra_ldflags or ()),
        "extra_include_paths": [str(item) for item in extra_include_paths or ()],
        "with_cuda": bool(cuda) if with_cuda is None else with_cuda,
        "is_python_module": is_python_module,
        "with_pytorch_error_handling": with_pytorch_error_handling,
        "no_implicit_headers": no_implicit_headers,
    }
    return request, build_directory


def load(
    name: str,
    sources: str | Sequence[str],
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
) -> tuple[dict[str, Any], Sequence[str | os.PathLike[str]]]:
    """The request of `torch.utils.cpp_extension.load` with these arguments, and the files to compile.

    Raises RuntimeError for what is not supported.
    """
    if is_standalone or with_sycl:
        raise RuntimeError("standalone programs and SYCL are not supported here")
    request, _ = load_inline(
        name,
        [],
        extra_cflags=extra_cflags,
        extra_cuda_cflags=extra_cuda_cflags,
        extra_ldflags=extra_ldflags,
        extra_include_paths=extra_include_paths,
        with_cuda=with_cuda,
        is_python_module=is_python_module,
        no_implicit_headers=True,
    )
    return request, [sources] if isinstance(sources, str | os.PathLike) else sources


def _texts(value: str | Sequence[str] | None) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else [str(item) for item in value]


def _functions(value: str | Sequence[str] | Mapping[str, str] | None) -> dict[str, str] | None:
    if value is None:
        return None
    if isinstance(value, str):
        return {value: value}
    if isinstance(value, Mapping):
        return {str(k): str(v) for k, v in value.items()}
    return {str(item): str(item) for item in value}


TORCH_LIBRARIES = frozenset({"c10", "torch", "torch_cpu", "torch_python", "cudart", "c10_cuda", "torch_cuda"})
"""The libraries of torch that the builder links by itself."""


def request_of(
    extension: Any, *, include_paths: Sequence[str], library_paths: Sequence[str]
) -> dict[str, Any]:
    """The request of one extension (a `setuptools.Extension`), without its sources.

    `include_paths` and `library_paths`: torch's and CUDA's own, which the builder adds by itself. Raises
    RuntimeError for what is not supported.
    """
    given = extension.extra_compile_args or []
    flags = given if isinstance(given, Mapping) else {"cxx": given, "nvcc": given}
    if "nvcc_dlink" in flags or extension.extra_objects:
        raise RuntimeError("device linking and object files are not supported here")
    defines = [
        f"-D{name}" if value is None else f"-D{name}={value}" for name, value in extension.define_macros
    ]
    defines += [f"-U{name}" for name in extension.undef_macros]
    libraries = [name for name in extension.libraries if name not in TORCH_LIBRARIES]
    link = [
        *(f"-L{path}" for path in _others(extension.library_dirs, library_paths)),
        *(f"-Wl,-rpath,{path}" for path in extension.runtime_library_dirs),
        *(f"-l{name}" for name in libraries),
        *(extension.extra_link_args or ()),
    ]
    return {
        "name": extension.name.rpartition(".")[2],
        "cpp_sources": [],
        "cuda_sources": [],
        "extra_cflags": _quoted([*_pythons_flags(), *defines, *flags.get("cxx", ())]),
        "extra_cuda_cflags": _quoted([*defines, *flags.get("nvcc", ())]),
        "extra_ldflags": _quoted(link),
        "extra_include_paths": _others(extension.include_dirs, include_paths),
        "with_cuda": "cudart" in extension.libraries,
        "no_implicit_headers": True,
    }


def _pythons_flags() -> list[str]:
    """setuptools gives the flags that Python was compiled with: those that decide how fast code is."""
    given = shlex.split(sysconfig.get_config_var("CFLAGS") or "")
    return [flag for flag in given if flag.startswith("-O") or flag in ("-DNDEBUG", "-fwrapv")]


def _others(paths: Iterable[Any], known: Sequence[str]) -> list[str]:
    return [str(path) for path in paths if Path(path) not in map(Path, known)]


def _quoted(words: Iterable[Any]) -> list[str]:
    """setuptools takes each as one word, the builder splits them as a shell does."""
    return [shlex.quote(str(word)) for word in words]


MAX_FILES = 500
MAX_CHARS = 4_000_000
"""Most characters of all headers together."""
ROOT = "own"
"""Folder in the build's directory."""

_INCLUDE = re.compile(
    r"""^[ \t]*\#[ \t]*include[ \t]*(?P<quoted>["<])(?P<name>[^">\n]+)[">]"""
    r"""|__has_include[ \t]*\([ \t]*(?P<asked>["<])(?P<there>[^">\n]+)[">]""",
    re.MULTILINE,
)
_EMPTY = "_"
"""Name of a file that holds a folder's place."""
_USABLE = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]{0,199}")


def with_own_files(
    request: dict[str, Any],
    *,
    machine: Sequence[str],
    sources: Iterable[str | os.PathLike[str]] = (),
    directory: str | None = None,
) -> dict[str, Any]:
    """The request with what it takes of the candidate's own files.

    `sources`: files to compile, each by itself. `directory`: where the inline sources would lie. `machine`:
    folders that the builder has, too; files below them are not sent. Raises OSError for a source that cannot
    be read and RuntimeError for what cannot be sent.
    """
    gathered = _Gathering([_absolute(path) for path in machine], request["extra_include_paths"])
    for source in sources:
        gathered.add_unit(_absolute(source))
    texts = (*request["cpp_sources"], *request["cuda_sources"])
    gathered.follow(texts, _absolute(directory) if directory is not None else None)
    return request | gathered.fields()


class _Gathering:
    """What was found so far."""

    def __init__(self, machine: Sequence[Path], include_paths: Sequence[str]) -> None:
        self._machine = machine
        self._include_paths = [path.strip() for path in include_paths]
        self._folders = [
            path for path in map(_absolute, self._include_paths) if not self._of_the_machine(path)
        ]
        self._units: list[Path] = []
        self._texts: dict[Path, str] = {}
        self._spelt: set[str] = set()
        """What includes spell out, part by part."""
        self._passed: dict[Path, None] = {}
        """Folders on the way to an included file, those that `..` leaves again among them."""

    def add_unit(self, path: Path) -> None:
        if path not in self._units:
            self._units.append(path)
            self._add(path)

    def follow(self, texts: Iterable[str], folder: Path | None) -> None:
        """Adds the headers of texts that would lie in a folder, and of what was added already."""
        waiting = [(text, folder) for text in texts]
        waiting += [(self._texts[path], path.parent) for path in self._units]
        while waiting:
            text, folder = waiting.pop(0)
            for path in self._included(text, folder):
                if path not in self._texts:
                    self._add(path)
                    waiting.append((self._texts[path], path.parent))

    def fields(self) -> dict[str, Any]:
        """`files`, `units` and `extra_include_paths` of a request."""
        names = self._names()
        include_paths = [
            text if self._of_the_machine(path) else names[path]
            for text in self._include_paths
            if self._of_the_machine(path := _absolute(text)) or path in names
        ]
        files = {names[path]: text for path, text in self._texts.items()}
        # No folder is made for its own sake, and one that is only passed has to be there, too.
        files |= {f"{names[path]}/{_EMPTY}": "" for path in self._passed if path not in self._above()}
        return {
            "files": files,
            "units": [names[path] for path in self._units],
            "extra_include_paths": include_paths,
        }

    def _add(self, path: Path) -> None:
        self._texts[path] = path.read_text(encoding="utf-8", errors="replace")
        if len(self._texts) > MAX_FILES or sum(map(len, self._texts.values())) > MAX_CHARS:
            raise RuntimeError(
                f"more than {MAX_FILES} files, or {MAX_CHARS} characters of them, for one extension"
            )

    def _included(self, text: str, folder: Path | None) -> Iterator[Path]:
        for match in _INCLUDE.finditer(text):
            name, sign = match["name"] or match["there"], match["quoted"] or match["asked"]
            if name.startswith("/"):  # means nothing elsewhere
                continue
            near = [folder] if sign == '"' and folder is not None else []
            for place in (*near, *self._folders):
                path = _absolute(place / name)
                if _is_file(path) and not self._of_the_machine(path):
                    parts = PurePath(name).parts
                    self._spelt.update(parts)
                    self._passed |= {_absolute(place.joinpath(*parts[:n])): None for n in range(len(parts))}
                    yield path
                    break

    def _above(self) -> set[Path]:
        return {folder for path in self._texts for folder in path.parents}

    def _of_the_machine(self, path: Path) -> bool:
        return any(path.is_relative_to(folder) for folder in self._machine)

    def _names(self) -> dict[Path, str]:
        """The place in the build of each file, and of each folder above one."""
        above = self._above()
        kept = [folder for folder in self._folders if folder in above]
        top = _common([*(path.parent for path in self._texts), *kept, *self._passed])
        names = {top: ROOT}
        for number, path in enumerate(self._units):
            self._name(path, names, f"unit{number}{path.suffix}")
        for path in self._texts:
            self._name(path, names, path.name)
        for path in self._passed:
            self._name(path, names, f"folder{len(names)}")
        return names

    def _name(self, path: Path, names: dict[Path, str], fresh: str) -> str:
        """Names a path and the folders above it; `fresh` where no include spells its name out."""
        if path not in names:
            above = self._name(path.parent, names, f"folder{len(names)}")
            own = path.name if path.name in self._spelt else fresh
            if _USABLE.fullmatch(own) is None:
                raise RuntimeError(f"a file with such a name cannot be built here: {path.name!a}")
            names[path] = f"{above}/{own}"
        return names[path]


def _absolute(path: str | os.PathLike[str]) -> Path:
    """Without `..`, and without following links: a path that an include spells out stays as it is."""
    return Path(os.path.normpath(Path(path).absolute()))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # the name is too long, say
        return False


def _common(folders: Sequence[Path]) -> Path:
    return Path(os.path.commonpath(folders)) if folders else Path("/")
