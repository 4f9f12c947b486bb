"""From a candidate's `load_inline` request to a shared library: compilers, sandbox, content-addressed cache.

>>> builder = Builder(cache_directory())
>>> build = builder.build(BuildRequest(name="ext", cpp_sources=(source,), functions={"f": "f"}))
"""

from pipeline.build.builder import Builder
from pipeline.build.machine import ARCHITECTURE_VARIABLE
from pipeline.build.toolchain import Toolchain, learn_toolchain

__all__ = ["ARCHITECTURE_VARIABLE", "Builder", "Toolchain", "learn_toolchain"]
