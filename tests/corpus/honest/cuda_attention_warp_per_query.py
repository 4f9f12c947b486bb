# problem: level1/8
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: one warp a query goes once over the keys, with a running maximum, sum and output.

Surface: no score is ever stored; the output is rescaled on the way.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int WARPS = 4;

template <int EACH>  // elements of a head in each lane
__global__ void __launch_bounds__(32 * WARPS) attend(const float* __restrict__ q, const float* __restrict__ k,
                                                     const float* __restrict__ v, float* __restrict__ y,
                                                     int64_t all_queries, int queries, int keys, float scale) {
    constexpr int SIZE = 32 * EACH;
    const int lane = threadIdx.x % 32;
    const int64_t query = int64_t(blockIdx.x) * WARPS + threadIdx.x / 32;
    if (query >= all_queries) {
        return;  // the whole warp; there is no barrier below
    }
    const int64_t head = query / queries;
    const float* key = k + head * keys * SIZE;
    const float* value = v + head * keys * SIZE;
    float mine[EACH], sums[EACH] = {};
    for (int i = 0; i < EACH; ++i) {
        mine[i] = q[query * SIZE + i * 32 + lane] * scale;
    }
    float top = -INFINITY, total = 0.0f;
    for (int place = 0; place < keys; ++place) {
        float score = 0.0f;
        for (int i = 0; i < EACH; ++i) {
            score = fmaf(mine[i], key[int64_t(place) * SIZE + i * 32 + lane], score);
        }
        for (int offset = 16; offset > 0; offset >>= 1) {
            score += __shfl_xor_sync(0xffffffffu, score, offset);
        }
        const float higher = fmaxf(top, score);
        const float shrink = expf(top - higher), power = expf(score - higher);
        total = total * shrink + power;
        for (int i = 0; i < EACH; ++i) {
            sums[i] = fmaf(power, value[int64_t(place) * SIZE + i * 32 + lane], sums[i] * shrink);
        }
        top = higher;
    }
    for (int i = 0; i < EACH; ++i) {
        y[query * SIZE + i * 32 + lane] = sums[i] / total;
    }
}

torch::Tensor attention(torch::Tensor q, torch::Tensor k, torch::Tensor v) {
    TORCH_CHECK(q.is_cuda() && q.scalar_type() == at::kFloat && q.dim() == 4, "attention: float32, four dimensions");
    TORCH_CHECK(k.sizes() == v.sizes() && k.size(3) == q.size(3), "attention: shapes");
    q = q.contiguous();
    k = k.contiguous();
    v = v.contiguous();
    auto y = at::empty_like(q);
    const int64_t all_queries = q.size(0) * q.size(1) * q.size(2);
    if (all_queries == 0) {
        return y;
    }
    const int queries = static_cast<int>(q.size(2)), keys = static_cast<int>(k.size(2));
    const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(q.size(3))));
    const unsigned blocks = static_cast<unsigned>((all_queries + WARPS - 1) / WARPS);
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const float *q_in = q.data_ptr<float>(), *k_in = k.data_ptr<float>(), *v_in = v.data_ptr<float>();
    float* out = y.data_ptr<float>();
    switch (q.size(3)) {
        case 32:
            attend<1><<<blocks, 32 * WARPS, 0, stream>>>(q_in, k_in, v_in, out, all_queries, queries, keys, scale);
            break;
        case 64:
            attend<2><<<blocks, 32 * WARPS, 0, stream>>>(q_in, k_in, v_in, out, all_queries, queries, keys, scale);
            break;
        default:
            TORCH_CHECK(false, "attention: heads of 32 or 64 only, not ", q.size(3));
    }
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

extension = load_inline(
    name="attention_warps",
    cpp_sources="torch::Tensor attention(torch::Tensor q, torch::Tensor k, torch::Tensor v);",
    cuda_sources=cuda_source,
    functions=["attention"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return extension.attention(q, k, v)
