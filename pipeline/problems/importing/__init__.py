"""Problems from elsewhere become a suite: from files or from the rows of a data set. Nothing is run.

`read_drafts(source, ...)` in `sources` reads what becomes problems; `write_suite(drafts, to)` in `drafts`
writes all of them or none.
"""

from kernelproof.problems.importing.drafts import Draft, Drafts, Imported, write_suite
from kernelproof.problems.importing.sources import read_drafts

__all__ = ["Draft", "Drafts", "Imported", "read_drafts", "write_suite"]
