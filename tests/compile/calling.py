"""Calling a compiled extension in a process of its own, with the real torch."""

from __future__ import annotations

import subprocess
import sys

from kernelproof.types import Build

IMPORT = """
import sys, torch
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
name, path = sys.argv[1:]
spec = spec_from_file_location(name, path, loader=ExtensionFileLoader(name, path))
module = module_from_spec(spec)
spec.loader.exec_module(module)
"""


def call(build: Build, code: str) -> str:
    """What `code` prints with the compiled extension as `module`."""
    command = [sys.executable, "-c", IMPORT + code, build.name, str(build.library)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.strip()
