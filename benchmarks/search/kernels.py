"""Real C++ kernels as points: each is a choice of form, tile, unrolling, vectors and threads.

Each kernel solves a packaged problem. Its source is made from the choices, and the compiler and the clock
say what they are worth: no table says which is the best.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.search.kernel_forms import MATMUL, ROW_MAX, SILU, TRANSPOSE
from benchmarks.search.landscape import Point
from benchmarks.search.proposer import Program
from kernelproof.types import Status

CHOICES = {
    "form": ("0", "1", "2", "3"),
    "tile": ("16", "32", "64", "256"),
    "unroll": ("1", "2", "4", "8"),
    "vector": (
        "-fno-tree-vectorize",
        "-ftree-vectorize",
        "-ftree-vectorize -march=native",
        "-ftree-vectorize -march=native -ffast-math",
    ),
    "threads": ("1", "all"),
}
"""The values of each coordinate. The first is what a plain program does."""
LEVELS = tuple(len(values) for values in CHOICES.values())

_PROGRAM = '''import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

# @mark@
SOURCE = r"""
#include <Python.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

constexpr long TILE = @tile@;

@code@
static PyObject* call(PyObject*, PyObject* given) {
    long long in[3], n[3];
    double c[2];
    if (!PyArg_ParseTuple(given, "LLL@LLL@dd", in, in + 1, in + 2, n, n + 1, n + 2, c, c + 1)) return nullptr;
    @entry@((const float*)in[0], (const float*)in[1], (float*)in[2], n[0]@less@, n[1], n[2], c[0], c[1]);
    Py_RETURN_NONE;
}

#define JOINED(head, name) head##name
#define INIT(name) JOINED(PyInit_, name)
static PyMethodDef methods[] = {{"call", call, METH_VARARGS, ""}, {}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "", "", -1, methods};
PyMODINIT_FUNC INIT(TORCH_EXTENSION_NAME)() { return PyModule_Create(&definition); }
"""
module = load_inline(
    "kernel",
    cpp_sources=SOURCE,
    no_implicit_headers=True,
    extra_cflags=@flags@,
    extra_ldflags=@linked@,
)


class ModelNew(nn.Module)@colon@
@forward@'''


@dataclass(frozen=True)
class Kernel:
    """One problem's kernel in all its forms."""

    problem_id: str
    forms: tuple[str, ...]
    forward: str
    """The body of ModelNew."""

    def source(self, program: Program) -> str:
        """The whole candidate. A program with a mistake holds that mistake in its code."""
        values = {
            name: values[level] for (name, values), level in zip(CHOICES.items(), program.point, strict=True)
        }
        threaded = values["threads"] == "all"
        mistake = program.mistake
        flags = ["-O2", *values["vector"].split(), *["-fopenmp"] * threaded]
        replaced = {
            "code": self.forms[program.point[0]],  # first: names stand in these two as well
            "forward": self.forward,
            "mark": f"{self.problem_id} {program.point} {program.number} {mistake or 'none'}",
            "tile": values["tile"],
            "unroll": "" if values["unroll"] == "1" else f"#pragma GCC unroll {values['unroll']}",
            "threads": "#pragma omp parallel for" if threaded else "",
            "flags": repr(flags),
            "linked": repr(["-fopenmp"] * threaded),
            "entry": "walk" if mistake is Status.BUILD_ERROR else "run",
            "LLL": "LL" if mistake is Status.RUNTIME_ERROR else "LLL",
            "less": " - 1" if mistake is Status.WRONG_OUTPUT else "",
            "colon": "" if mistake is Status.SYNTAX_ERROR else ":",
            "made": "zeros" if mistake is Status.WRONG_OUTPUT else "empty",
            "out": "y[None]" if mistake is Status.WRONG_SHAPE else "y",
            "kept": "self.kept = torch.float31" if mistake is Status.LOAD_ERROR else "pass",
        }
        text = _PROGRAM
        for name, value in replaced.items():
            text = text.replace(f"@{name}@", value)
        return re.sub(r"\n *(?=\n)", "\n", text)


MISTAKES = frozenset(
    {
        Status.WRONG_OUTPUT,
        Status.RUNTIME_ERROR,
        Status.BUILD_ERROR,
        Status.WRONG_SHAPE,
        Status.SYNTAX_ERROR,
        Status.LOAD_ERROR,
    }
)
"""What a program can hold. A timeout is left out: it would take a minute of the machine each time."""


def points() -> Iterator[Point]:
    """All of the space: 512 points."""
    return itertools.product(*map(range, LEVELS))


def read(source: str) -> Program | None:
    """The program of a source that `Kernel.source` made; None of any other."""
    found = re.search(r"^# \S+ \(([\d, ]+)\) (\d+) (\w+)$", source, re.MULTILINE)
    if found is None:
        return None
    point = tuple(int(level) for level in found[1].split(","))
    return Program(point, int(found[2]), None if found[3] == "none" else Status(found[3]))


def _module(init: str, arguments: str, made: str, call: str) -> str:
    return f"""    def __init__(self{init}):
        super().__init__()
        @kept@
{made}
    def forward(self, {arguments}):
{call}        return @out@
"""


KERNELS = {
    kernel.problem_id: kernel
    for kernel in (
        Kernel(
            "level1/4",
            MATMUL,
            _module(
                "",
                "a, b",
                "",
                "        y = torch.@made@(a.shape[0], b.shape[1])\n"
                "        sizes = (a.shape[0], a.shape[1], b.shape[1])\n"
                "        module.call(a.data_ptr(), b.data_ptr(), y.data_ptr(), *sizes, 0.0, 0.0)\n",
            ),
        ),
        Kernel(
            "level1/18",
            TRANSPOSE,
            _module(
                "",
                "x",
                "",
                "        y = torch.@made@(x.shape[0], x.shape[2], x.shape[1])\n"
                "        module.call(x.data_ptr(), 0, y.data_ptr(), *x.shape, 0.0, 0.0)\n",
            ),
        ),
        Kernel(
            "level2/6",
            ROW_MAX,
            _module(
                ", scale, bound",
                "x",
                "        self.constants = (scale, bound)\n",
                "        y = torch.@made@(x.shape[0])\n"
                "        module.call(x.data_ptr(), 0, y.data_ptr(), *x.shape, 0, *self.constants)\n",
            ),
        ),
        Kernel(
            "level2/10",
            SILU,
            _module(
                "",
                "gate, up",
                "",
                "        y = torch.@made@(*gate.shape)\n"
                "        sizes = (*gate.shape, 0)\n"
                "        module.call(gate.data_ptr(), up.data_ptr(), y.data_ptr(), *sizes, 0.0, 0.0)\n",
            ),
        ),
    )
}
