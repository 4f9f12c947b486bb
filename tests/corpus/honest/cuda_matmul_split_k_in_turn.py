# problem: level1/4
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: blocks that share a tile of the output add their parts in turn; each waits for the one before it.

Surface: blocks that spin on a counter in memory, which lives on between calls and is back at zero after each.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int TILE = 32;
constexpr int PARTS = 4;  // of K

__global__ void __launch_bounds__(256) multiply_parts(const float* __restrict__ a, const float* __restrict__ b,
                                                      float* c, int* turns, int m, int n, int k, int tiles_across) {
    __shared__ float left[TILE][TILE + 1], right[TILE][TILE];
    const int tile = blockIdx.x / PARTS, part = blockIdx.x % PARTS;  // earlier parts have earlier blocks
    const int row = tile / tiles_across * TILE, column = tile % tiles_across * TILE;
    const int share = (k + PARTS - 1) / PARTS, first = part * share, last = min(k, first + share);
    const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    float sums[4] = {};
    for (int start = first; start < last; start += TILE) {
        for (int i = y; i < TILE; i += 8) {
            const bool inside = row + i < m && start + x < last;
            left[i][x] = inside ? a[int64_t(row + i) * k + start + x] : 0.0f;
            const bool within = start + i < last && column + x < n;
            right[i][x] = within ? b[int64_t(start + i) * n + column + x] : 0.0f;
        }
        __syncthreads();
        for (int p = 0; p < TILE; ++p) {
            for (int i = 0; i < 4; ++i) {
                sums[i] = fmaf(left[y + 8 * i][p], right[p][x], sums[i]);
            }
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        while (atomicAdd(turns + tile, 0) != part) {
            __nanosleep(100);
        }
        __threadfence();
    }
    __syncthreads();
    for (int i = 0; i < 4; ++i) {
        if (row + y + 8 * i < m && column + x < n) {
            volatile float* out = c + int64_t(row + y + 8 * i) * n + column + x;
            *out = part == 0 ? sums[i] : *out + sums[i];
        }
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicExch(turns + tile, part + 1 == PARTS ? 0 : part + 1);
    }
}

torch::Tensor multiply(torch::Tensor a, torch::Tensor b, torch::Tensor turns) {
    a = a.contiguous();
    b = b.contiguous();
    const int m = static_cast<int>(a.size(0)), k = static_cast<int>(a.size(1)), n = static_cast<int>(b.size(1));
    auto c = at::empty({m, n}, a.options());
    const int across = (n + TILE - 1) / TILE, tiles = across * ((m + TILE - 1) / TILE);
    TORCH_CHECK(turns.numel() >= tiles && turns.scalar_type() == at::kInt, "multiply: a counter for each tile");
    if (tiles > 0) {
        multiply_parts<<<tiles * PARTS, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
            a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), turns.data_ptr<int>(), m, n, k, across);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return c;
}
"""

extension = load_inline(
    name="matmul_in_turn",
    cpp_sources="torch::Tensor multiply(torch::Tensor a, torch::Tensor b, torch::Tensor turns);",
    cuda_sources=cuda_source,
    functions=["multiply"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.turns = None

    def forward(self, a, b):
        tiles = -(-a.shape[0] // 32) * -(-b.shape[1] // 32)
        if self.turns is None or self.turns.numel() < tiles:
            self.turns = torch.zeros(tiles, dtype=torch.int32, device=a.device)
        return extension.multiply(a, b, self.turns)
