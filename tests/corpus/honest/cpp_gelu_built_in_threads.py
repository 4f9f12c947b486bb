# problem: level1/9
# expected: correct
# settings: {"own_kernel": true, "measure": false}
# devices: cpu
"""Mechanism: builds two extensions at once in threads, one named as torch is, the other with a digit first;
and a third while the constructor begins.

Surface: one wire for requests and replies; modules that are listed under others' names.
"""
import threading
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
torch::Tensor apply(torch::Tensor x) {
    auto in = x.contiguous();
    auto out = torch::empty_like(in);
    for (int64_t i = 0; i < in.numel(); i++) {
        const float v = in.data_ptr<float>()[i];
        out.data_ptr<float>()[i] = BODY;
    }
    return out;
}
"""
BODIES = {"torch": "0.5f * (1.0f + std::erf(v * 0.70710678f))", "2d_negative": "-v", "same": "v"}
built = {}


def build(name):
    source = SOURCE.replace("BODY", BODIES[name])
    built[name] = load_inline(name, cpp_sources=[source], functions=["apply"]).apply


with ThreadPoolExecutor() as pool:
    list(pool.map(build, ["torch", "2d_negative"]))
behind = threading.Thread(target=build, args=["same"])
behind.start()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        behind.join()

    def forward(self, x):
        negative, same, share = built["2d_negative"], built["same"], built["torch"]
        return negative(negative(same(x))) * share(x)
