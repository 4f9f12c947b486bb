# problem: level1/14
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: inline PTX `mma.sync` on bfloat16; each operand in three parts, six products, sums in registers.

Surface: instructions and operands of a half-precision cheat, and yet the parts hold all of float32.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_bf16.h>

constexpr int TILE = 32;   // rows and columns of the output: four warps, 16 rows and 16 columns each
constexpr int DEPTH = 16;  // of K, one instruction's
constexpr int PITCH = DEPTH + 1;

// The parts of two neighbours in K, the earlier one in the low half.
__device__ __forceinline__ void split(float first, float second, unsigned parts[3]) {
    for (int i = 0; i < 3; ++i) {
        const __nv_bfloat16 low = __float2bfloat16_rn(first), high = __float2bfloat16_rn(second);
        first -= __bfloat162float(low);
        second -= __bfloat162float(high);
        parts[i] = unsigned(__bfloat16_as_ushort(low)) | unsigned(__bfloat16_as_ushort(high)) << 16;
    }
}

__device__ __forceinline__ void multiply_add(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__global__ void __launch_bounds__(128) multiply_pairs(const float* __restrict__ a, const float* __restrict__ b,
                                                      float* __restrict__ c, int m, int n, int k) {
    __shared__ float left[TILE * PITCH], right[TILE * PITCH];  // right: by columns
    const int lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4 * 2;
    const int warp_row = threadIdx.x / 64 * 16, warp_column = threadIdx.x / 32 % 2 * 16;
    const int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
    a += int64_t(blockIdx.z) * m * k;
    b += int64_t(blockIdx.z) * k * n;
    c += int64_t(blockIdx.z) * m * n;
    float sums[2][4] = {};
    for (int start = 0; start < k; start += DEPTH) {
        for (int i = threadIdx.x; i < TILE * DEPTH; i += 128) {
            const int row = first_row + i / DEPTH, p = start + i % DEPTH;
            left[i / DEPTH * PITCH + i % DEPTH] = row < m && p < k ? a[int64_t(row) * k + p] : 0.0f;
            const int q = start + i / TILE, column = first_column + i % TILE;
            right[i % TILE * PITCH + i / TILE] = q < k && column < n ? b[int64_t(q) * n + column] : 0.0f;
        }
        __syncthreads();
        unsigned a_parts[3][4];
        for (int r = 0; r < 4; ++r) {  // rows group and group + 8; K from pair and from pair + 8
            const float* from = left + (warp_row + group + r % 2 * 8) * PITCH + pair + r / 2 * 8;
            unsigned parts[3];
            split(from[0], from[1], parts);
            for (int i = 0; i < 3; ++i) {
                a_parts[i][r] = parts[i];
            }
        }
        for (int half = 0; half < 2; ++half) {
            const float* from = right + (warp_column + half * 8 + group) * PITCH + pair;
            unsigned low[3], high[3];
            split(from[0], from[1], low);
            split(from[8], from[9], high);
            float part[4] = {};
            for (int total = 2; total >= 0; --total) {  // the smallest products first
                for (int i = 0; i <= total; ++i) {
                    multiply_add(part, a_parts[i], low[total - i], high[total - i]);
                }
            }
            for (int i = 0; i < 4; ++i) {
                sums[half][i] += part[i];
            }
        }
        __syncthreads();
    }
    for (int half = 0; half < 2; ++half) {
        for (int i = 0; i < 4; ++i) {
            const int row = first_row + warp_row + group + i / 2 * 8;
            const int column = first_column + warp_column + half * 8 + pair + i % 2;
            if (row < m && column < n) {
                c[int64_t(row) * n + column] = sums[half][i];
            }
        }
    }
}

torch::Tensor multiply(torch::Tensor a, torch::Tensor b) {
    TORCH_CHECK(a.dim() == 3 && b.dim() == 3 && a.size(0) == b.size(0) && a.size(2) == b.size(1), "multiply: sizes");
    a = a.contiguous();
    b = b.contiguous();
    const int m = static_cast<int>(a.size(1)), k = static_cast<int>(a.size(2)), n = static_cast<int>(b.size(2));
    auto c = at::empty({a.size(0), m, n}, a.options());
    if (c.numel() > 0) {
        const dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE, static_cast<unsigned>(a.size(0)));
        multiply_pairs<<<grid, 128, 0, c10::cuda::getCurrentCUDAStream()>>>(
            a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), m, n, k);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return c;
}
"""

extension = load_inline(
    name="batched_three_parts",
    cpp_sources="torch::Tensor multiply(torch::Tensor a, torch::Tensor b);",
    cuda_sources=cuda_source,
    functions=["multiply"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return extension.multiply(a, b)
