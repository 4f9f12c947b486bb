"""Our sources and command lines against those of the installed torch's own `load_inline` and `load`.

torch writes its files into a directory and is stopped before it compiles; what it wrote is the standard.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kernelproof.types import BuildRequest
from kernelproof.verifier.build import Toolchain
from kernelproof.verifier.build.compiling import RESOURCE_USAGE, SHIM, make_plan

STOCK = """
import json, os, sys
from pathlib import Path
folder, cuda_home, cases = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
os.environ.pop("CC", None)
os.environ["TORCH_CUDA_ARCH_LIST"] = "9.0"
from torch.utils import cpp_extension
cpp_extension.CUDA_HOME = cuda_home
cpp_extension._run_ninja_build = lambda *args, **kwargs: None
cpp_extension._import_module_from_library = lambda *args, **kwargs: None
for name, arguments in cases.items():
    (folder / name).mkdir()
    units = arguments.pop("units", None)
    call = cpp_extension.load if units else cpp_extension.load_inline
    more = {"sources": [str(folder / name / unit) for unit in units]} if units else {}
    for unit in units or ():
        Path(folder, name, unit).write_text("int f();")
    call(name=name, build_directory=str(folder / name), **more, **arguments)
"""

CASES: dict[str, dict[str, object]] = {
    "functions": {"cpp_sources": ["int f();", "int f() { return 1; }"], "functions": {"f": "doc", "g": "g"}},
    "own_bindings": {"cpp_sources": ["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}"]},
    "no_error_handling": {
        "cpp_sources": ["int f();"],
        "functions": {"f": "f"},
        "with_pytorch_error_handling": False,
    },
    "no_functions_at_all": {"cpp_sources": [""], "functions": {}},
    "flags": {
        "cpp_sources": ["int f();"],
        "extra_cflags": ["-O3 -march=native", " -DNAME='a b' ", "-std=c++17"],
        "extra_ldflags": ["-lm", "-Wl,-z,now -s"],
        "extra_include_paths": ["/opt/some include", "/opt/other"],
    },
    "cuda": {
        "cpp_sources": ["int f();"],
        "cuda_sources": ["__global__ void k() {}", "int f() { return 1; }"],
        "functions": {"f": "f"},
        "extra_cflags": ["-O2"],
        "extra_cuda_cflags": ["-O3", "--use_fast_math -lineinfo"],
    },
    "cuda_own_architecture": {
        "cpp_sources": ["int f();"],
        "cuda_sources": ["int f() { return 1; }"],
        "extra_cuda_cflags": ["-gencode=arch=compute_90a,code=sm_90a", "-std=c++17"],
    },
    "cuda_without_headers": {
        "cpp_sources": ["int f();"],
        "cuda_sources": ["int f() { return 1; }"],
        "no_implicit_headers": True,
        "is_python_module": False,
    },
    "cuda_libraries_only": {"cpp_sources": ["int f();"], "with_cuda": True},
}

LOADED: dict[str, dict[str, object]] = {
    "files": {
        "units": ["unit0.cpp", "unit1.c", "unit2.cc"],
        "extra_cflags": ["-O3"],
        "extra_ldflags": ["-lm"],
        "extra_include_paths": ["/opt/other"],
    },
    "cuda_files": {"units": ["unit0.cu", "unit1.cpp", "unit2.cu"], "extra_cuda_cflags": ["-O3"]},
    "cuda_files_alone": {"units": ["unit0.cuh"]},
}


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Path:
    """A folder with a folder for each case, which holds what torch wrote for it."""
    folder = tmp_path_factory.mktemp("stock")
    usable = {name: case for name, case in (CASES | LOADED).items() if toolchain.nvcc or not uses_cuda(case)}
    command = [sys.executable, "-c", STOCK, str(folder), str(toolchain.cuda_home), json.dumps(usable)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert finished.returncode == 0, finished.stderr
    return folder


def uses_cuda(case: dict[str, object]) -> bool:
    return "cuda_sources" in case or "with_cuda" in case or ".cu" in str(case.get("units"))


def stock_flags(ninja_file: str, variable: str) -> list[str]:
    found = re.search(rf"^{variable} = (.*)$", ninja_file, re.MULTILINE)
    return shlex.split(found.group(1)) if found else []


def without_cpu_torch_additions(words: list[str], toolchain: Toolchain) -> list[str]:
    """Our arguments without what a CPU build of torch makes necessary, and without the wish to be told of
    registers (docs/reference/builds.md)."""
    words = [word for word in words if word != RESOURCE_USAGE]
    if toolchain.torch_cuda is not None:
        return words
    pairs = (
        " ".join(words).replace(f" -isystem {SHIM}", "").replace(" -DC10_CUDA_NO_CMAKE_CONFIGURE_FILE", "")
    )
    return pairs.split(" ")


@pytest.mark.few(4)
@pytest.mark.parametrize("name", CASES)
def test_sources_and_flags_are_those_of_load_inline(name: str, stock: Path, toolchain: Toolchain) -> None:
    case = CASES[name]
    if uses_cuda(case) and toolchain.nvcc is None:
        pytest.skip("no nvcc on this machine")
    written = {path.name: path.read_text() for path in (stock / name).iterdir() if path.is_file()}
    settled = toolchain.model_copy(update={"architecture": "9.0", "ccbin": None})
    plan = make_plan(BuildRequest.model_validate({"name": name, **case}), settled)
    for source in ("main.cpp", "cuda.cu"):
        assert plan.files.get(source) == written.get(source)

    commands = [shlex.split(command) for command in plan.commands]
    ninja_file = written["build.ninja"]
    ours = without_cpu_torch_additions(commands[0][1:-4], toolchain)
    assert " ".join(ours) == " ".join(stock_flags(ninja_file, "cflags"))
    if "cuda_sources" in case:
        ours = without_cpu_torch_additions(commands[1][1:-4], toolchain)
        assert " ".join(ours) == " ".join(stock_flags(ninja_file, "cuda_cflags"))
    expected = stock_flags(ninja_file, "ldflags")
    if toolchain.torch_cuda is None:
        expected = [flag for flag in expected if flag not in ("-lc10_cuda", "-ltorch_cuda")]
    link = commands[-1]
    assert link[link.index("-shared") : -2] == expected


@pytest.mark.parametrize("name", LOADED)
def test_files_are_compiled_as_load_compiles_them(name: str, stock: Path, toolchain: Toolchain) -> None:
    case = LOADED[name]
    if uses_cuda(case) and toolchain.nvcc is None:
        pytest.skip("no nvcc on this machine")
    settled = toolchain.model_copy(update={"architecture": "9.0", "ccbin": None})
    given = case["units"]
    assert isinstance(given, list)
    units = [f"own/{unit}" for unit in given]
    fields = {**case, "name": name, "units": units, "files": dict.fromkeys(units, "int f();")}
    plan = make_plan(BuildRequest.model_validate(fields), settled)
    ninja_file = (stock / name / "build.ninja").read_text()
    *compiled, link = [shlex.split(command) for command in plan.commands]
    theirs = re.findall(r"^build (\S+): (\w+) (\S+)$", ninja_file, re.MULTILINE)
    assert [(Path(source).name, rule) for _, rule, source in theirs if rule != "link"] == [
        (Path(words[-3]).name, "cuda_compile" if "nvcc" in words[0] else "compile") for words in compiled
    ]
    for words in compiled:
        variable = "cuda_cflags" if "nvcc" in words[0] else "cflags"
        ours = without_cpu_torch_additions(words[1:-4], toolchain)
        assert " ".join(ours) == " ".join(stock_flags(ninja_file, variable))
    assert link[1 : link.index("-shared")] == [words[-1] for words in compiled]
