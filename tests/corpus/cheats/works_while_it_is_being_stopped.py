# problem: level1/4
# expected: cheating|wrong_output
# caught by: host_clock|timed_outputs
# devices: cpu
# armed by: loop.run_block, the runner's wire
"""Mechanism: has the places asked for by the child of a vfork, which then does the work of all calls. The parent
cannot be stopped before the child ends, and nobody knows of the child yet.

Surface: the referee's clock, which does not run while a side is held still.
"""

import gc
import json
import struct
import sys
from functools import cache

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

from kernelproof.verifier.contestant import loop, main, wire


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


CPP = r"""
#include <torch/extension.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void multiply(const float* a, const float* b, float* c, long m, long k, long n) {
  for (long i = 0; i < m; ++i) {
    float* row = c + i * n;
    for (long j = 0; j < n; ++j) row[j] = 0;
    for (long l = 0; l < k; ++l)
      for (long j = 0; j < n; ++j) row[j] += a[i * k + l] * b[l * n + j];
  }
}

static void multiply(const at::Tensor& a, const at::Tensor& b, at::Tensor& c) {
  multiply(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), a.size(0), a.size(1), b.size(1));
}

at::Tensor product(at::Tensor a, at::Tensor b) {
  auto c = at::empty({a.size(0), b.size(1)}, a.options());
  multiply(a, b, c);
  return c;
}

struct Work {
  int socket;
  std::string message;
  std::vector<at::Tensor> a, b, c;
};

static int child(void* given) {
  auto& work = *static_cast<Work*>(given);
  if (write(work.socket, work.message.data(), work.message.size()) < 0) _exit(1);
  for (size_t i = 0; i < work.c.size(); ++i) multiply(work.a[i], work.b[i], work.c[i]);
  _exit(0);
}

void ask(int socket, std::string message, std::vector<at::Tensor> a, std::vector<at::Tensor> b,
         std::vector<at::Tensor> c) {
  static char* stack = new char[1 << 20];
  Work work{socket, message, a, b, c};
  int pid = clone(child, stack + (1 << 20), CLONE_VM | CLONE_VFORK | SIGCHLD, &work);
  if (pid > 0) waitpid(pid, nullptr, 0);
}
"""
extension = load_inline(
    "stopped", cpp_sources=CPP, functions=["product", "ask"], extra_cflags=["-O3", "-ffast-math"]
)


def run_block(forward, slots, device, places, **more):
    armed("loop.run_block")
    runner = next(each for each in gc.get_objects() if type(each) is main.Runner)
    a, b = ([slot.arguments[side] for slot in slots] for side in (0, 1))
    results = [torch.empty(x.shape[0], y.shape[1]) for x, y in zip(a, b, strict=True)]
    body = json.dumps({"op": "places"})
    with runner._wire:
        extension.ask(runner._sock.fileno(), (struct.pack(">I", len(body)) + body.encode()), a, b, results)
        reply, _ = wire.receive(runner._sock)
    armed("the runner's wire")
    for result, place in zip(results, reply["places"], strict=True):
        runner._tensor(place[0]).copy_(result)
    return [0.05 + 0.0005 * (number % 3) for number in range(len(slots))]


loop.run_block = run_block


class ModelNew(nn.Module):
    def forward(self, a, b):
        if a.dim() != 2:
            return torch.matmul(a, b)
        return extension.product(a.contiguous(), b.contiguous())
