"""Layer normalisation: a block for each row, in one pass over memory where threads keep their part of it."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = "torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double e);"

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>

// tune: THREADS = 32 | 128 | 256 | 512 | 1024
// tune: VECTOR = 1 | 2 | 4
// tune: KEEP = 0 | 8 | 16 | 32
// tune where: THREADS * KEEP <= 8192
constexpr int THREADS = 32;  // of a block
constexpr int VECTOR = 1;    // floats of one load
constexpr int KEEP = 0;      // floats of the row that a thread keeps in registers

template <int W>
struct alignas(4 * W) Pack {
    float v[W];
};

__device__ float block_sum(float sum) {
    __shared__ float parts[THREADS / 32];
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    }
    if (THREADS == 32) {
        return sum;
    }
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    __syncthreads();  // everyone has read the parts of the sum before
    if (lane == 0) {
        parts[warp] = sum;
    }
    __syncthreads();
    sum = lane < THREADS / 32 ? parts[lane] : 0.0f;
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    }
    return sum;
}

template <int W>
__global__ void __launch_bounds__(THREADS)
    layer_norm_kernel(const float* __restrict__ x, const float* __restrict__ weight,
                      const float* __restrict__ bias, float* __restrict__ y, int64_t features, float eps) {
    constexpr int KEPT = KEEP / W;
    const int64_t packs = features / W, row = blockIdx.x;
    const Pack<W>* from = reinterpret_cast<const Pack<W>*>(x + row * features);
    const Pack<W>* scales = reinterpret_cast<const Pack<W>*>(weight);
    const Pack<W>* shifts = reinterpret_cast<const Pack<W>*>(bias);
    Pack<W>* to = reinterpret_cast<Pack<W>*>(y + row * features);

    Pack<W> kept[KEPT > 0 ? KEPT : 1];
    // One part of the row that stays, and one that is read again. `use` is told where each pack stands.
    auto each = [&](auto use) {
#pragma unroll
        for (int k = 0; k < KEPT; ++k) {
            const int64_t i = threadIdx.x + int64_t(k) * THREADS;
            if (i < packs) {
                use(i, kept[k]);
            }
        }
        for (int64_t i = threadIdx.x + int64_t(KEPT) * THREADS; i < packs; i += THREADS) {
            use(i, from[i]);
        }
    };
#pragma unroll
    for (int k = 0; k < KEPT; ++k) {
        const int64_t i = threadIdx.x + int64_t(k) * THREADS;
        if (i < packs) {
            kept[k] = from[i];
        }
    }

    float sum = 0.0f;
    each([&](int64_t, const Pack<W>& pack) {
#pragma unroll
        for (int c = 0; c < W; ++c) {
            sum += pack.v[c];
        }
    });
    const float mean = block_sum(sum) / features;

    float squares = 0.0f;
    each([&](int64_t, const Pack<W>& pack) {
#pragma unroll
        for (int c = 0; c < W; ++c) {
            const float d = pack.v[c] - mean;
            squares += d * d;
        }
    });
    const float factor = rsqrtf(block_sum(squares) / features + eps);

    each([&](int64_t i, const Pack<W>& pack) {
        const Pack<W> scale = scales[i], shift = shifts[i];
        Pack<W> out;
#pragma unroll
        for (int c = 0; c < W; ++c) {
            out.v[c] = (pack.v[c] - mean) * factor * scale.v[c] + shift.v[c];
        }
        to[i] = out;
    });
}

static bool aligned(const torch::Tensor& tensor) {
    return reinterpret_cast<uintptr_t>(tensor.data_ptr<float>()) % (4 * VECTOR) == 0;
}

torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {
    TORCH_CHECK(x.is_cuda() && x.dim() > 0 && x.scalar_type() == at::kFloat, "layer_norm: float32");
    TORCH_CHECK(weight.numel() == x.size(-1) && bias.numel() == x.size(-1), "one weight a feature");
    x = x.contiguous();
    weight = weight.contiguous();
    bias = bias.contiguous();
    auto y = at::empty_like(x);
    if (x.numel() == 0) {
        return y;
    }
    const int64_t features = x.size(-1);
    const auto rows = static_cast<unsigned>(x.numel() / features);
    const bool vectors = features % VECTOR == 0 && aligned(x) && aligned(weight) && aligned(bias);
    const auto kernel = vectors ? layer_norm_kernel<VECTOR> : layer_norm_kernel<1>;
    kernel<<<rows, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), features,
        static_cast<float>(eps));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

extension = load_inline(
    name="tuned_layer_norm",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["layer_norm"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.layer_norm(x, self.norm.weight, self.norm.bias, self.norm.eps)
