"""Problems, candidates and recorded answers for tests of the commands: small, and quick to compile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.providers.server import completion

QUICK = ("--backend", "cpp", "--trials", "1", "--no-measure")
"""Options of a verification that only says whether a program is right."""

RELU = '''"""ReLU of a small matrix."""

import torch
from torch import nn


class Model(nn.Module):
    """max(x, 0)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


def get_inputs():
    return [torch.randn(64, 257)]


def get_init_inputs():
    return []
'''

SINES = '''"""The sine of the sine of ... of a matrix: work on one core that others hardly disturb."""

import torch
from torch import nn


class Model(nn.Module):
    """Forty sines, one after the other."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(40):
            x = torch.sin(x)
        return x


def get_inputs():
    return [torch.randn(64, 257)]


def get_init_inputs():
    return []
'''

_CANDIDATE = '''import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <Python.h>
#include <cmath>
#include <cstdint>
#include <algorithm>

@before@

void apply(std::int64_t from, std::int64_t to, std::int64_t count) {
    const float* x = reinterpret_cast<const float*>(from);
    float* y = reinterpret_cast<float*>(to);
    for (std::int64_t i = 0; i < count; ++i) {
        float value = x[i];
        @body@
        y[i] = value;
    }
}

static PyObject* call(PyObject*, PyObject* given) {
    long long from, to, count;
    if (!PyArg_ParseTuple(given, "LLL", &from, &to, &count)) return nullptr;
    apply(from, to, count);
    Py_RETURN_NONE;
}

#define JOINED(head, name) head##name
#define INIT(name) JOINED(PyInit_, name)
static PyMethodDef methods[] = {{"apply", call, METH_VARARGS, ""}, {}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "", "", -1, methods};
PyMODINIT_FUNC INIT(TORCH_EXTENSION_NAME)() { return PyModule_Create(&definition); }
"""
module = load_inline("@name@", cpp_sources=SOURCE, no_implicit_headers=True, extra_cflags=@flags@)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        module.apply(x.data_ptr(), y.data_ptr(), x.numel())
        return y
'''

_RIGHT = "value = std::max(value, 0.0f);"
_SLOW_TO_COMPILE = """
constexpr std::uint64_t spin(std::uint64_t steps) {
    std::uint64_t state = 1;
    for (std::uint64_t i = 0; i < steps; ++i) state = state * 6364136223846793005u + 1442695040888963407u;
    return state;
}
constexpr std::uint64_t spun = spin(@steps@);
"""


def candidate(name: str, body: str, before: str = "", flags: tuple[str, ...] = ()) -> str:
    """A program whose extension does `body` to every `value`.

    It builds in a fraction of a second: it includes Python's headers alone, not torch's or pybind11's.
    """
    text = _CANDIDATE.replace("@before@", before).replace("@body@", body)
    return text.replace("@name@", name).replace("@flags@", repr(["-O2", *flags]))


def right(name: str = "right") -> str:
    """Correct for RELU; another name is another extension, built anew."""
    return candidate(name, _RIGHT)


def wrong(name: str = "wrong") -> str:
    """Compiles, and is wrong for RELU wherever x < 0."""
    return candidate(name, "value = std::max(value, 1.0f);")


def uncompilable(name: str = "uncompilable") -> str:
    """A compile error."""
    return candidate(name, "value = no_such_function(value);")


def slow_to_compile(name: str, steps: int) -> str:
    """Correct for RELU; the compiler computes for `steps` steps: a million take about two seconds."""
    flags = ("-fconstexpr-ops-limit=9000000000000000", "-fconstexpr-loop-limit=2000000000")
    return candidate(name, _RIGHT, _SLOW_TO_COMPILE.replace("@steps@", str(steps)), flags)


def sines(name: str = "sines") -> str:
    """Correct for SINES."""
    return candidate(name, "for (int k = 0; k < 40; ++k) value = std::sin(value);")


def fenced(source: str) -> str:
    """An answer as models write it."""
    return f"Here is the kernel.\n\n```python\n{source}```\n\nIt works on every element."


def problems(root: Path) -> Path:
    """A suite of two problems: level1/1 (relu) and level1/2 (sines)."""
    level = root / "level1"
    level.mkdir(parents=True)
    (level / "1_relu.py").write_text(RELU)
    (level / "2_sines.py").write_text(SINES)
    return root


Answers = dict[tuple[str, int, int], dict[str, Any]]
"""(problem, sample, turn) to the `chat.completion` body."""


def answer(text: str, finish_reason: str = "stop") -> dict[str, Any]:
    """A server's body with this text."""
    body = completion(text)
    body["choices"][0]["finish_reason"] = finish_reason
    return body


def recording(path: Path, answers: Answers) -> Path:
    """Writes answers as a recording for the cpp backend."""
    with path.open("w", encoding="utf-8") as file:
        for (problem, sample, turn), body in answers.items():
            record = {"problem": problem, "backend": "cpp", "sample": sample, "turn": turn, "response": body}
            file.write(json.dumps(record) + "\n")
    return path
