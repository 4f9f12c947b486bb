# problem: level1/1
# expected: correct|cheating
# speedup below: 1.2
# devices: cuda
# settings: {"own_kernel": true, "size": "small", "measure_seconds": 3}
# armed by: the loop's slots
"""Mechanism: a thread computes the next call's result on a side stream while the cache is emptied.

Surface: inputs of a block lie readable before their call, and a flush that leaves multiprocessors idle.
"""
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

__global__ void relu_kernel(const float* x, float* y, int64_t count) {
    int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count; i += step)
        y[i] = fmaxf(x[i], 0.0f);
}

torch::Tensor relu(torch::Tensor input) {
    auto x = input.contiguous();
    auto y = torch::empty_like(x);
    relu_kernel<<<2048, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""
AFTER_A_CALL_S = 8e-5
"""By then the loop has queued the flush, which is not done."""

extension = load_inline("beside", "torch::Tensor relu(torch::Tensor input);", SOURCE, functions=["relu"])
wanted, results = [], {}
called = threading.Event()


def ahead():
    side = torch.cuda.Stream(priority=-1)
    while True:
        called.wait()
        called.clear()
        time.sleep(AFTER_A_CALL_S)
        while wanted:
            x = wanted.pop()
            with torch.cuda.stream(side):
                y, done = extension.relu(x), torch.cuda.Event()
                done.record()
            results[x.data_ptr()] = y, done


threading.Thread(target=ahead, daemon=True).start()


def after(x):
    frame = sys._getframe()
    while frame is not None:
        slots = frame.f_locals.get("slots")
        if isinstance(slots, list) and slots and isinstance(slots[0], loop.Slot):
            inputs = [slot.arguments[0] for slot in slots if not slot.late]
            places = [other.data_ptr() for other in inputs]
            return inputs[places.index(x.data_ptr()) + 1:][:1] if x.data_ptr() in places else []
        frame = frame.f_back
    return []


class ModelNew(nn.Module):
    def forward(self, x):
        y, done = results.pop(x.data_ptr(), (None, None))
        if done is not None:
            armed("the loop's slots")
            torch.cuda.current_stream().wait_event(done)
        else:
            y = extension.relu(x)
        wanted.extend(after(x))
        called.set()
        return y
