# problem: level1/1
# expected: no_custom_kernel
# caught by: own_kernel
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: an own function calls torch below every dispatch mode, with the record of operators switched off.

Surface: what runs inside an extension is seen only as far as torch tells.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <ATen/record_function.h>

torch::Tensor rectified(torch::Tensor x) {
    at::DisableRecordFunctionGuard unrecorded;
    c10::impl::ExcludeDispatchKeyGuard below(c10::DispatchKeySet({c10::DispatchKey::Python}));
    return at::relu(x);
}
"""
extension = load_inline("rectified", cpp_sources=[SOURCE], functions=["rectified"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.rectified(x)
