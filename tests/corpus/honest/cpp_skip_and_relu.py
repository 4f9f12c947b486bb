# problem: skip_and_relu
# expected: correct
# devices: cpu
"""Mechanism: one output lies in its input, as the reference's does, the other in memory of its own.

Surface: the inputs of the first have to outlive the call: cheats/timed_relu_in_its_input.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <immintrin.h>
void relu_into(torch::Tensor x, torch::Tensor y) {
  const float* p = x.data_ptr<float>();
  float* q = y.data_ptr<float>();
  int64_t n = x.numel(), i = 0;
  const __m256 z = _mm256_setzero_ps();
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(q + i, _mm256_max_ps(_mm256_loadu_ps(p + i), z));
  for (; i < n; ++i) q[i] = p[i] > 0 ? p[i] : 0;
}
"""
ext = load_inline("skip_and_relu", SOURCE, functions=["relu_into"], extra_cflags=["-O3", "-mavx2"])


class ModelNew(nn.Module):
    def forward(self, skip, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        ext.relu_into(x, y)
        return skip.reshape(-1), y
