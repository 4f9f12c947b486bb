"""From a candidate's `load_inline` request to a shared library: compilers, sandbox, content-addressed cache.

>>> builder = Builder(cache_directory())
>>> build = builder.build(BuildRequest(name="ext", cpp_sources=(source,), functions={"f": "f"}))
"""

from kernelproof.verifier.build.build_index import BuildIndex
from kernelproof.verifier.build.builder import KEY_FORMAT, Builder
from kernelproof.verifier.build.machine import ARCHITECTURE_VARIABLE, find_tools
from kernelproof.verifier.build.toolchain import Toolchain, learn_toolchain
from kernelproof.verifier.build.upkeep import clear, prune, survey

__all__ = [
    "ARCHITECTURE_VARIABLE",
    "KEY_FORMAT",
    "BuildIndex",
    "Builder",
    "Toolchain",
    "clear",
    "find_tools",
    "learn_toolchain",
    "prune",
    "survey",
]
