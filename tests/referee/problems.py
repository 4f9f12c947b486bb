"""Problems and candidates of a few lines, and an oracle for one."""

from __future__ import annotations

from pathlib import Path

import torch

from kernelproof.problems import read_problem
from kernelproof.types import Problem
from kernelproof.verifier.contestant.loop import OutputMeta
from kernelproof.verifier.referee.correctness.oracle import Oracle
from kernelproof.verifier.referee.inputs.problem import LoadedProblem

CPU = torch.device("cpu")
TEXT = """
import torch
import torch.nn.functional as F
from torch import nn
{top}

class Model(nn.Module):
    def __init__(self{parameters}):
        super().__init__()
        {init}

    def forward(self, {names}):
        {forward}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return [{arguments}]
"""


def text(
    forward: str,
    inputs: str,
    init: str = "pass",
    *,
    names: str = "x",
    top: str = "",
    parameters: str = "",
    arguments: str = "",
) -> str:
    """A problem's source: the bodies of its methods, what it draws, and what its model is made with."""
    return TEXT.format(
        forward=forward,
        inputs=inputs,
        init=init,
        names=names,
        top=top,
        parameters=f", {parameters}" if parameters else "",
        arguments=arguments,
    )


def as_candidate(problem: str) -> str:
    """The problem's own model as ModelNew."""
    return problem.partition("def get_inputs")[0].replace("class Model(", "class ModelNew(")


def written(folder: Path, source: str, name: str = "problem") -> Problem:
    """The problem in a file of the folder."""
    path = folder / f"{name}.py"
    path.write_text(source)
    return read_problem(path)


def oracle_of(folder: Path, source: str) -> Oracle:
    """An oracle on a CPU for the problem with the weights of seed 0."""
    loaded = LoadedProblem(written(folder, source), "full")
    return Oracle(loaded, loaded.construct(0, CPU), OutputMeta(None, []), CPU, "fp32")
