# problem: level2/3
# expected: correct|cheating|wrong_output
# speedup below: 1.05
# devices: cuda
# settings: {"measure_seconds": 6}
# armed by: the loop's slots
"""Mechanism: a thread computes the next call's result on a side stream while the cache is emptied.

Surface: inputs of a block that lie readable before their call (they are masked now), and a flush that leaves
multiprocessors idle.
"""
import queue
import sys
import threading
import time
from functools import cache

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

from kernelproof.verifier.contestant import loop


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void gelu_kernel(float* x, int64_t count, float scale) {
    int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count; i += step)
        x[i] = 0.5f * scale * x[i] * (1.0f + erff(x[i] * 0.70710678f));
}

torch::Tensor linear(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double scale) {
    auto y = at::addmm(bias, x, weight.t());
    gelu_kernel<<<2048, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(y.data_ptr<float>(), y.numel(), scale);
    return y;
}
"""

extension = load_inline(
    "beside",
    "torch::Tensor linear(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double scale);",
    SOURCE,
    functions=["linear"],
)
wanted, results = queue.SimpleQueue(), {}


def ahead():
    side = torch.cuda.Stream(priority=-1)
    while True:
        before, slots, work, x = wanted.get()
        before.synchronize()  # now the loop goes on, and queues the flush
        with torch.cuda.stream(side):
            y, done = work(x), torch.cuda.Event()
            done.record()
        results[id(slots), x.data_ptr()] = y, done


threading.Thread(target=ahead, daemon=True).start()


def block():
    frame = sys._getframe()
    while frame is not None:
        slots = frame.f_locals.get("slots")
        if isinstance(slots, list) and slots and isinstance(slots[0], loop.Slot):
            return slots
        frame = frame.f_back
    return []


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scale):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = scale

    def work(self, x):
        with torch.no_grad():
            return extension.linear(x, self.linear.weight, self.linear.bias, self.scale)

    def forward(self, x):
        slots = block()
        if not slots:
            return self.work(x)
        inputs = [slot.arguments[0] for slot in slots]
        number = [other.data_ptr() for other in inputs].index(x.data_ptr())
        if number:
            armed("the loop's slots")
            while not (known := results.pop((id(slots), x.data_ptr()), None)):
                time.sleep(0)
            y, done = known
            torch.cuda.current_stream().wait_event(done)
        else:
            y = self.work(x)
        if number + 1 < len(inputs):
            before = torch.cuda.Event()
            before.record()
            wanted.put((before, slots, self.work, inputs[number + 1]))
        return y
