"""Problems from elsewhere become a suite: from files, from a module's class, from a data set. Nothing is run.

`read_drafts(source, ...)` reads what becomes problems, and `write_suite(drafts, to)` writes all of them or
none.
"""

from kernelproof.problems.importing.drafts import Draft, Drafts, Imported
from kernelproof.problems.importing.modules import ModuleRequest, draft_of_module, is_module
from kernelproof.problems.importing.sources import read_drafts
from kernelproof.problems.importing.writing import place_in, write_into, write_suite

__all__ = [
    "Draft",
    "Drafts",
    "Imported",
    "ModuleRequest",
    "draft_of_module",
    "is_module",
    "place_in",
    "read_drafts",
    "write_into",
    "write_suite",
]
