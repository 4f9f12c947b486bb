"""From a candidate's `load_inline` request to a shared library: compilers, sandbox, content-addressed cache.

>>> builder = Builder(cache_directory())
>>> build = builder.build(BuildRequest(name="ext", cpp_sources=(source,), functions={"f": "f"}))
"""

from pipeline.build.builder import KEY_FORMAT, Builder
from pipeline.build.machine import ARCHITECTURE_VARIABLE, find_tools
from pipeline.build.marks import Marks
from pipeline.build.toolchain import Toolchain, learn_toolchain
from pipeline.build.upkeep import clear, prune, survey

__all__ = [
    "ARCHITECTURE_VARIABLE",
    "KEY_FORMAT",
    "Builder",
    "Marks",
    "Toolchain",
    "clear",
    "find_tools",
    "learn_toolchain",
    "prune",
    "survey",
]
