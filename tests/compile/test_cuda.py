"""CUDA sources: compiled on any machine that has nvcc, with or without a GPU or a CUDA torch."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernelproof.analysis.resources import resources
from kernelproof.types import Build, BuildRequest, BuildState
from kernelproof.verifier.build import Builder
from tests.compile.calling import call

KERNEL = """
#include <cuda_runtime.h>
__global__ void relu(const float* x, float* y, long n) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}
extern "C" void launch(const float* x, float* y, long n, cudaStream_t stream) {
  relu<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n);
}
"""


def test_a_kernel_is_compiled_for_the_target_architecture(builder: Builder, plain, nvcc: str) -> None:
    build = builder.build(plain(cuda_sources=(KERNEL,)))
    assert build.state is BuildState.OK, build.log
    architecture = builder.toolchain.architecture.replace(".", "")
    assert f"sm_{architecture}".encode() in Path(str(build.library)).read_bytes()
    assert sum("-gencode" in command for command in build.commands) == 1
    (relu,) = resources([build])
    assert relu.name == "relu" and 4 <= relu.registers <= 64 and relu.spill_bytes == 0
    assert "Compile time" not in build.log


@pytest.mark.ci
def test_native_means_the_gpu_compiled_for(builder: Builder, plain, nvcc: str) -> None:
    build = builder.build(plain(cuda_sources=(KERNEL,), extra_cuda_cflags=("-arch=native",)))
    assert build.state is BuildState.OK, build.log
    number = builder.toolchain.architecture.replace(".", "")
    assert f"-arch=sm_{number}" in build.commands[1] and "-gencode" not in build.commands[1]


def test_an_error_in_device_code_names_its_line(builder: Builder, plain, nvcc: str) -> None:
    build = builder.build(plain(cuda_sources=("__global__ void k() {\n  undeclared = 1;\n}",)))
    assert build.state is BuildState.ERROR
    assert 'cuda.cu(2): error: identifier "undeclared" is undefined' in build.log


@pytest.mark.ci
def test_files_are_compiled_each_by_itself(builder: Builder, plain, nvcc: str) -> None:
    files = {
        "own/include/count.h": 'extern "C" int count();\n',
        "own/a/name.h": "#define NAME count\n",
        "own/b/name.h": "#define NAME relu_of\n",
        "own/a/unit0.cpp": '#include "name.h"\n#include <count.h>\nstatic int one() { return 1; }\n'
        "int NAME() { return one(); }\n",
        "own/b/unit1.cu": '#include "name.h"\n#include <count.h>\nstatic int one() { return count(); }\n'
        '__global__ void kernel() {}\nextern "C" int NAME() { kernel<<<1, 1>>>(); return one(); }\n',
    }
    units = ("own/a/unit0.cpp", "own/b/unit1.cu")
    build = builder.build(
        plain(cpp_sources=(), files=files, units=units, extra_include_paths=("own/include",))
    )
    assert build.state is BuildState.OK, build.log
    told = subprocess.run(["nm", "-D", str(build.library)], capture_output=True, text=True, timeout=60).stdout
    assert {" T count", " T relu_of"} <= {line[16:] for line in told.splitlines()}


CANDIDATE = """
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
__global__ void relu(const float* x, float* y, long n) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}
torch::Tensor relu_cuda(torch::Tensor x) {
  const c10::cuda::CUDAGuard guard(x.device());
  auto y = torch::empty_like(x);
  relu<<<(x.numel() + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""


@pytest.fixture(scope="module")
def built(builder: Builder) -> Build:
    """What most answers look like: a stream, a guard, a launch check."""
    if builder.toolchain.nvcc is None:
        pytest.skip("no nvcc on this machine")
    request = BuildRequest(
        name="relu_ext",
        cpp_sources=("torch::Tensor relu_cuda(torch::Tensor x);",),
        cuda_sources=(CANDIDATE,),
        functions={"relu_cuda": "relu_cuda"},
    )
    return builder.build(request)


@pytest.mark.slow
def test_a_candidate_with_streams_and_guards_compiles_without_a_gpu(built: Build) -> None:
    assert built.state is BuildState.OK, built.log


@pytest.mark.gpu
def test_a_candidate_computes_on_the_gpu(built: Build) -> None:
    code = """
x = torch.randn(100_003, device="cuda")
print(torch.equal(module.relu_cuda(x), torch.relu(x)))
"""
    assert call(built, code) == "True"
