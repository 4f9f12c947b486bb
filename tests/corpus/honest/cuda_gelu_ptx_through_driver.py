# problem: level1/9
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: PTX text, loaded with cuModuleLoadData through ctypes, launched with cuLaunchKernel on torch's stream.

Surface: an own kernel without an extension, a compiler or any JIT of torch's: the driver alone translates it.
"""
import ctypes

import torch
from torch import nn

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry gelu_tanh_free(.param .u64 px, .param .u64 py, .param .u32 pn)
{
    .reg .pred %p<4>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    .reg .f32 %f<24>;
    ld.param.u64 %rd1, [px];
    ld.param.u64 %rd2, [py];
    ld.param.u32 %r1, [pn];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    mov.u32 %r6, %nctaid.x;
    mul.lo.u32 %r6, %r6, %r3;
AGAIN:
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    mul.wide.u32 %rd3, %r5, 4;
    add.u64 %rd4, %rd1, %rd3;
    add.u64 %rd5, %rd2, %rd3;
    ld.global.f32 %f1, [%rd4];
    // t = 1 / (1 + 0.3275911 z), z = |x| / sqrt(2): formula 7.1.26 of Abramowitz and Stegun
    abs.f32 %f2, %f1;
    mul.f32 %f2, %f2, 0f3F3504F3;
    fma.rn.f32 %f3, %f2, 0f3EA7BA05, 0f3F800000;
    rcp.rn.f32 %f3, %f3;
    mov.f32 %f4, 0f3F87DC22;
    fma.rn.f32 %f4, %f4, %f3, 0fBFBA00E3;
    fma.rn.f32 %f4, %f4, %f3, 0f3FB5F0E3;
    fma.rn.f32 %f4, %f4, %f3, 0fBE91A98E;
    fma.rn.f32 %f4, %f4, %f3, 0f3E827906;
    mul.f32 %f4, %f4, %f3;
    // f4 = erfc(z) = f4 * exp(-z * z)
    mul.f32 %f5, %f2, %f2;
    mul.f32 %f5, %f5, 0fBFB8AA3B;
    ex2.approx.f32 %f5, %f5;
    mul.f32 %f4, %f4, %f5;
    // x * Phi(x) = max(x, 0) - |x| * erfc(z) / 2
    abs.f32 %f6, %f1;
    min.f32 %f6, %f6, 0f7149F2CA;  // 1e30: infinity times nothing would be no number
    mul.f32 %f6, %f6, 0f3F000000;
    mul.f32 %f6, %f6, %f4;
    max.f32 %f7, %f1, 0f00000000;
    sub.f32 %f7, %f7, %f6;
    setp.nan.f32 %p2, %f1, %f1;
    selp.f32 %f7, %f1, %f7, %p2;
    st.global.f32 [%rd5], %f7;
    add.u32 %r5, %r5, %r6;
    bra AGAIN;
DONE:
    ret;
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.driver = self.function = None

    def load(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        self.checked(self.driver.cuModuleLoadData(ctypes.byref(module), ctypes.c_char_p(PTX)))
        self.checked(self.driver.cuModuleGetFunction(ctypes.byref(self.function), module, b"gelu_tanh_free"))

    def checked(self, code):
        if code:
            raise RuntimeError(f"the driver says {code}")

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        if n >= 1 << 31:
            raise ValueError("indices are 32 bits wide")
        if self.function is None:
            self.load()
        values = (ctypes.c_uint64(x.data_ptr()), ctypes.c_uint64(y.data_ptr()), ctypes.c_uint32(n))
        pointers = (ctypes.c_void_p * 3)(*(ctypes.addressof(value) for value in values))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        blocks = max(1, min((n + 255) // 256, 4096))
        self.checked(
            self.driver.cuLaunchKernel(self.function, blocks, 1, 1, 256, 1, 1, 0, stream, pointers, None)
        )
        return y
