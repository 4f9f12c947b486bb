#include "kernelproof_glue.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

namespace kernelproof {

bool is_tensor(PyObject* value) {
  return THPVariable_Check(value);
}

const at::Tensor& unpacked(PyObject* value) {
  return THPVariable_Unpack(value);
}

PyObject* wrapped(const at::Tensor& value) {
  return THPVariable_Wrap(value);
}

PyObject* guarded(Call call, void* function, PyObject* const* arguments) {
  HANDLE_TH_ERRORS
  return call(function, arguments);
  END_HANDLE_TH_ERRORS
}

} // namespace kernelproof
