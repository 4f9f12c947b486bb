// Bindings of plain functions to Python, for the types that kernels are called with. They take and give what
// pybind11 with torch's converters takes and gives. For any other type the compilation fails, and the extension is
// compiled with pybind11 itself.
#pragma once
#include "kernelproof_glue.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace kernelproof {

// One argument: `load` says whether the Python object can be had as a T, `value` is it.
template <typename T, typename = void>
struct Argument;

template <>
struct Argument<at::Tensor> {
  at::Tensor value;
  bool load(PyObject* object) {
    if (!is_tensor(object)) {
      return false;
    }
    value = unpacked(object);
    return true;
  }
};

template <>
struct Argument<bool> {
  bool value = false;
  bool load(PyObject* object) {
    if (object == Py_True || object == Py_False || object == Py_None) {
      value = object == Py_True;
      return true;
    }
    auto* number = Py_TYPE(object)->tp_as_number;
    if (number == nullptr || number->nb_bool == nullptr) {
      return false;
    }
    const int found = number->nb_bool(object);
    if (found < 0) {
      PyErr_Clear();
    }
    value = found == 1;
    return found >= 0;
  }
};

template <typename T>
struct Argument<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char>>> {
  T value = 0;
  bool load(PyObject* object) {
    if (PyFloat_Check(object)) {
      return false;
    }
    PyObject* index = PyNumber_Index(object);
    if (index == nullptr) {
      PyErr_Clear();
      return false;
    }
    const bool fits = std::is_signed_v<T> ? as_signed(index) : as_unsigned(index);
    Py_DECREF(index);
    return fits;
  }

 private:
  bool as_signed(PyObject* index) {
    int overflow = 0;
    const long long found = PyLong_AsLongLongAndOverflow(index, &overflow);
    value = static_cast<T>(found);
    return overflow == 0 && static_cast<long long>(value) == found;
  }
  bool as_unsigned(PyObject* index) {
    const unsigned long long found = PyLong_AsUnsignedLongLong(index);
    if (PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return false;
    }
    value = static_cast<T>(found);
    return static_cast<unsigned long long>(value) == found;
  }
};

template <typename T>
struct Argument<T, std::enable_if_t<std::is_same_v<T, double> || std::is_same_v<T, float>>> {
  T value = 0;
  bool load(PyObject* object) {
    const double found = PyFloat_AsDouble(object);
    if (found == -1.0 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return false;
    }
    value = static_cast<T>(found);
    return true;
  }
};

template <>
struct Argument<std::string> {
  std::string value;
  bool load(PyObject* object) {
    if (PyBytes_Check(object)) {
      value.assign(PyBytes_AS_STRING(object), PyBytes_GET_SIZE(object));
      return true;
    }
    Py_ssize_t size = 0;
    const char* text = PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &size) : nullptr;
    if (text == nullptr) {
      PyErr_Clear();
      return false;
    }
    value.assign(text, size);
    return true;
  }
};

template <typename T>
struct Argument<std::optional<T>> {
  std::optional<T> value;
  bool load(PyObject* object) {
    if (object == Py_None) {
      value.reset();
      return true;
    }
    Argument<T> inner;
    if (!inner.load(object)) {
      return false;
    }
    value = std::move(inner.value);
    return true;
  }
};

template <typename T>
struct Argument<std::vector<T>> {
  std::vector<T> value;
  bool load(PyObject* object) {
    if (!PySequence_Check(object) || PyUnicode_Check(object) || PyBytes_Check(object) || is_tensor(object)) {
      return false;
    }
    PyObject* items = PySequence_Fast(object, "");
    if (items == nullptr) {
      PyErr_Clear();
      return false;
    }
    bool loaded = true;
    for (Py_ssize_t i = 0; loaded && i < PySequence_Fast_GET_SIZE(items); ++i) {
      Argument<T> inner;
      loaded = inner.load(PySequence_Fast_GET_ITEM(items, i));
      value.push_back(std::move(inner.value));
    }
    Py_DECREF(items);
    return loaded;
  }
};

// Results: a new reference each.
inline PyObject* as_python(const at::Tensor& value) {
  return wrapped(value);
}
inline PyObject* as_python(bool value) {
  return PyBool_FromLong(value);
}
inline PyObject* as_python(const std::string& value) {
  return PyUnicode_FromStringAndSize(value.data(), static_cast<Py_ssize_t>(value.size()));
}
template <typename T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0>
PyObject* as_python(T value) {
  return PyFloat_FromDouble(static_cast<double>(value));
}
template <typename T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char>, int> = 0>
PyObject* as_python(T value) {
  if constexpr (std::is_signed_v<T>) {
    return PyLong_FromLongLong(value);
  } else {
    return PyLong_FromUnsignedLongLong(value);
  }
}
template <typename T>
PyObject* as_python(const std::vector<T>& value);
template <typename... T>
PyObject* as_python(const std::tuple<T...>& value);

template <typename T>
PyObject* as_python(const std::vector<T>& value) {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(value.size()));
  for (size_t i = 0; list != nullptr && i < value.size(); ++i) {
    PyObject* item = as_python(value[i]);
    if (item == nullptr) {
      Py_CLEAR(list);
    } else {
      PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), item);
    }
  }
  return list;
}

template <typename... T>
PyObject* as_python(const std::tuple<T...>& value) {
  PyObject* made = PyTuple_New(sizeof...(T));
  if (made == nullptr) {
    return nullptr;
  }
  Py_ssize_t place = 0;
  const auto set = [&](PyObject* item) {
    PyTuple_SET_ITEM(made, place++, item); // a missing item is dealt with below
    return item != nullptr;
  };
  const bool whole = std::apply([&](const auto&... each) { return (set(as_python(each)) & ...); }, value);
  if (!whole) {
    Py_CLEAR(made);
  }
  return made;
}

// A plain function, called from Python.
template <typename R, typename... A>
struct Function {
  R (*function)(A...);

  // What Python calls; `self` holds the function.
  static PyObject* python(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
    if (count != static_cast<Py_ssize_t>(sizeof...(A))) {
      PyErr_Format(
          PyExc_TypeError, "incompatible function arguments: %zu are taken, %zd were given", sizeof...(A), count);
      return nullptr;
    }
    void* function = PyCapsule_GetPointer(self, nullptr);
    return function == nullptr ? nullptr : guarded(&call, function, arguments);
  }

 private:
  static PyObject* call(void* function, PyObject* const* arguments) {
    return with(reinterpret_cast<R (*)(A...)>(function), arguments, std::index_sequence_for<A...>{});
  }

  template <size_t... I>
  static PyObject* with(
      R (*function)(A...), [[maybe_unused]] PyObject* const* arguments, std::index_sequence<I...>) {
    std::tuple<Argument<std::remove_cv_t<std::remove_reference_t<A>>>...> held;
    int bad = -1;
    static_cast<void>(((std::get<I>(held).load(arguments[I]) || (bad = static_cast<int>(I), false)) && ...));
    if (bad >= 0) {
      PyErr_Format(
          PyExc_TypeError,
          "incompatible function arguments: argument %d is a %s",
          bad,
          Py_TYPE(arguments[bad])->tp_name);
      return nullptr;
    }
    if constexpr (std::is_void_v<R>) {
      function(static_cast<A&&>(std::get<I>(held).value)...);
      Py_RETURN_NONE;
    } else {
      return as_python(function(static_cast<A&&>(std::get<I>(held).value)...));
    }
  }
};

} // namespace kernelproof

// The names under which torch's `load_inline` writes a module, so that its text, and what a compiler says about it,
// is the same with these bindings and with pybind11's.
namespace torch {
template <typename R, typename... A>
kernelproof::Function<R, A...> wrap_pybind_function(R (*function)(A...)) {
  return {function};
}
} // namespace torch

namespace pybind11 {
class module_ {
 public:
  explicit module_(PyObject* module) : module(module) {}

  // Nothing more is defined once something has failed: Python's error is set then.
  template <typename R, typename... A>
  module_& def(const char* name, kernelproof::Function<R, A...> function, const char* doc) {
    if (failed) {
      return *this;
    }
    const auto python = &kernelproof::Function<R, A...>::python;
    // As long as the module, which is never unloaded.
    auto* method = new PyMethodDef{
        name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(python)), METH_FASTCALL, doc};
    PyObject* self = PyCapsule_New(reinterpret_cast<void*>(function.function), nullptr, nullptr);
    PyObject* place = PyModule_GetNameObject(module);
    PyObject* made = self != nullptr && place != nullptr ? PyCFunction_NewEx(method, self, place) : nullptr;
    failed = made == nullptr || PyModule_AddObjectRef(module, name, made) < 0;
    Py_XDECREF(made);
    Py_XDECREF(place);
    Py_XDECREF(self);
    return *this;
  }

  bool failed = false;

 private:
  PyObject* module;
};
} // namespace pybind11

#define KERNELPROOF_TEXT_(name) #name
#define KERNELPROOF_TEXT(name) KERNELPROOF_TEXT_(name)
#define KERNELPROOF_JOIN_(first, second) first##second
#define KERNELPROOF_JOIN(first, second) KERNELPROOF_JOIN_(first, second)

#define PYBIND11_MODULE(name, variable)                                                                       \
  static void KERNELPROOF_JOIN(pybind11_init_, name)(pybind11::module_&);                                      \
  PyMODINIT_FUNC KERNELPROOF_JOIN(PyInit_, name)(void) {                                                       \
    static PyModuleDef definition = {                                                                          \
        PyModuleDef_HEAD_INIT, KERNELPROOF_TEXT(name), nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr}; \
    PyObject* made = PyModule_Create(&definition);                                                             \
    if (made != nullptr) {                                                                                     \
      pybind11::module_ module(made);                                                                          \
      KERNELPROOF_JOIN(pybind11_init_, name)(module);                                                          \
      if (module.failed) {                                                                                     \
        Py_CLEAR(made);                                                                                        \
      }                                                                                                        \
    }                                                                                                          \
    return made;                                                                                               \
  }                                                                                                            \
  void KERNELPROOF_JOIN(pybind11_init_, name)([[maybe_unused]] pybind11::module_ & variable)
