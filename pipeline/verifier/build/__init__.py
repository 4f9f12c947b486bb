"""From a candidate's `load_inline` request to a shared library: compilers, sandbox, content-addressed cache.

>>> builder = Builder(cache_directory())
>>> build = builder.build(BuildRequest(name="ext", cpp_sources=(source,), functions={"f": "f"}))

Begin with `builder`. `compiling` turns a request into files and command lines and runs the compilers over
them, `build_cache` keeps what they make (`kernelproof cache` surveys and prunes it), and `compiler_output`
says why a build failed. `slim_headers` only makes a build faster.
"""

from kernelproof.verifier.build.build_cache import BuildIndex, clear, prune, survey
from kernelproof.verifier.build.builder import KEY_FORMAT, Builder
from kernelproof.verifier.build.toolchain import ARCHITECTURE_VARIABLE, Toolchain, find_tools, learn_toolchain

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
