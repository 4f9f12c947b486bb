// What a candidate's bindings need of torch's Python side. `glue.cpp` defines it: compiled once for an
// environment and linked into every extension, it saves each of them the parse of torch's Python headers.
#pragma once
#include <Python.h>

#include <ATen/core/Tensor.h>

namespace kernelproof {

using Call = PyObject* (*)(void* function, PyObject* const* arguments);

#define KERNELPROOF_HIDDEN __attribute__((visibility("hidden")))

KERNELPROOF_HIDDEN bool is_tensor(PyObject* value);
// `value` must be a tensor.
KERNELPROOF_HIDDEN const at::Tensor& unpacked(PyObject* value);
// A new reference; None for an undefined tensor.
KERNELPROOF_HIDDEN PyObject* wrapped(const at::Tensor& value);
// Runs `call` as torch runs functions that are bound to Python: warnings and exceptions become Python's.
KERNELPROOF_HIDDEN PyObject* guarded(Call call, void* function, PyObject* const* arguments);

} // namespace kernelproof
