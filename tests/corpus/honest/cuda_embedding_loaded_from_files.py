# problem: level1/15
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: writes its sources into a temporary directory and builds them with `load`.

Surface: file access; no load_inline in sight.
"""
import tempfile
from pathlib import Path

from torch import nn
from torch.utils.cpp_extension import load

binding = r"""
#include <torch/extension.h>

torch::Tensor lookup(torch::Tensor table, torch::Tensor index);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("lookup", &lookup, "rows of a table");
}
"""

kernel = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void copy_rows(const float* __restrict__ table, const int64_t* __restrict__ index,
                          float* __restrict__ y, int features, int64_t vocabulary) {
    const int64_t row = index[blockIdx.x];
    const bool known = row >= 0 && row < vocabulary;
    for (int i = threadIdx.x; i < features; i += blockDim.x) {
        y[int64_t(blockIdx.x) * features + i] = known ? table[row * features + i] : NAN;
    }
}

torch::Tensor lookup(torch::Tensor table, torch::Tensor index) {
    TORCH_CHECK(table.is_cuda() && table.scalar_type() == at::kFloat && table.is_contiguous(), "lookup: table");
    TORCH_CHECK(index.is_cuda() && index.scalar_type() == at::kLong && index.dim() == 1, "lookup: index");
    index = index.contiguous();
    auto y = at::empty({index.size(0), table.size(1)}, table.options());
    if (y.numel() > 0) {
        copy_rows<<<static_cast<unsigned>(index.size(0)), 128, 0, c10::cuda::getCurrentCUDAStream()>>>(
            table.data_ptr<float>(), index.data_ptr<int64_t>(), y.data_ptr<float>(),
            static_cast<int>(table.size(1)), table.size(0));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

with tempfile.TemporaryDirectory() as folder:
    sources = {"binding.cpp": binding, "kernel.cu": kernel}
    for name, text in sources.items():
        Path(folder, name).write_text(text)
    extension = load(
        name="embedding_lookup",
        sources=[str(Path(folder, name)) for name in sources],
        extra_cuda_cflags=["-O3"],
    )


class ModelNew(nn.Module):
    def __init__(self, vocabulary, features):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, features)

    def forward(self, index):
        return extension.lookup(self.embedding.weight, index)
