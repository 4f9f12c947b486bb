"""Addition, layer normalisation and a sigmoid gate in one kernel; threads may keep their part of the row."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
torch::Tensor add_norm_gate(torch::Tensor x, torch::Tensor residual, torch::Tensor gate, torch::Tensor weight,
                            torch::Tensor bias, double eps);
"""

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>

// tune: THREADS = 32 | 128 | 256 | 512 | 1024
// tune: VECTOR = 1 | 2 | 4
// tune: KEEP = 0 | 4 | 8 | 16 | 32
// tune where: THREADS * KEEP <= 4096
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
    add_norm_gate_kernel(const float* __restrict__ x, const float* __restrict__ residual,
                         const float* __restrict__ gate, const float* __restrict__ weight,
                         const float* __restrict__ bias, float* __restrict__ y, int64_t features, float eps) {
    constexpr int KEPT = KEEP / W;
    const int64_t packs = features / W, row = blockIdx.x;
    const Pack<W>* from = reinterpret_cast<const Pack<W>*>(x + row * features);
    const Pack<W>* more = reinterpret_cast<const Pack<W>*>(residual + row * features);
    const Pack<W>* gates = reinterpret_cast<const Pack<W>*>(gate + row * features);
    const Pack<W>* scales = reinterpret_cast<const Pack<W>*>(weight);
    const Pack<W>* shifts = reinterpret_cast<const Pack<W>*>(bias);
    Pack<W>* to = reinterpret_cast<Pack<W>*>(y + row * features);

    Pack<W> kept[KEPT > 0 ? KEPT : 1];
    auto added = [&](int64_t i) {
        Pack<W> pack = from[i];
        const Pack<W> other = more[i];
#pragma unroll
        for (int c = 0; c < W; ++c) {
            pack.v[c] += other.v[c];
        }
        return pack;
    };
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
            use(i, added(i));
        }
    };
#pragma unroll
    for (int k = 0; k < KEPT; ++k) {
        const int64_t i = threadIdx.x + int64_t(k) * THREADS;
        if (i < packs) {
            kept[k] = added(i);
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
        const Pack<W> scale = scales[i], shift = shifts[i], open = gates[i];
        Pack<W> out;
#pragma unroll
        for (int c = 0; c < W; ++c) {
            const float normal = (pack.v[c] - mean) * factor * scale.v[c] + shift.v[c];
            out.v[c] = normal / (1.0f + expf(-open.v[c]));
        }
        to[i] = out;
    });
}

static bool aligned(const torch::Tensor& tensor) {
    return reinterpret_cast<uintptr_t>(tensor.data_ptr<float>()) % (4 * VECTOR) == 0;
}

torch::Tensor add_norm_gate(torch::Tensor x, torch::Tensor residual, torch::Tensor gate, torch::Tensor weight,
                            torch::Tensor bias, double eps) {
    TORCH_CHECK(x.is_cuda() && x.dim() > 0 && x.scalar_type() == at::kFloat, "add_norm_gate: float32");
    TORCH_CHECK(residual.sizes() == x.sizes() && gate.sizes() == x.sizes(), "add_norm_gate: shapes differ");
    TORCH_CHECK(weight.numel() == x.size(-1) && bias.numel() == x.size(-1), "one weight a feature");
    x = x.contiguous();
    residual = residual.contiguous();
    gate = gate.contiguous();
    weight = weight.contiguous();
    bias = bias.contiguous();
    auto y = at::empty_like(x);
    if (x.numel() == 0) {
        return y;
    }
    const int64_t features = x.size(-1);
    const auto rows = static_cast<unsigned>(x.numel() / features);
    const bool vectors = features % VECTOR == 0 && aligned(x) && aligned(residual) && aligned(gate) &&
                         aligned(weight) && aligned(bias);
    const auto kernel = vectors ? add_norm_gate_kernel<VECTOR> : add_norm_gate_kernel<1>;
    kernel<<<rows, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), residual.data_ptr<float>(), gate.data_ptr<float>(), weight.data_ptr<float>(),
        bias.data_ptr<float>(), y.data_ptr<float>(), features, static_cast<float>(eps));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

extension = load_inline(
    name="tuned_add_norm_gate",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["add_norm_gate"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)

    def forward(self, x: torch.Tensor, residual: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        norm = self.norm
        return extension.add_norm_gate(x, residual, gate, norm.weight, norm.bias, norm.eps)
