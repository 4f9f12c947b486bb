"""The lines that `kernelproof db check` prints."""

from __future__ import annotations

from kernelproof.db.upkeep.checking import Checked, Trouble
from kernelproof.wording import counted


def trouble_line(trouble: Trouble) -> str:
    """Something that is wrong."""
    return f"{trouble.where}: {trouble.what}"


def checked_lines(done: Checked) -> list[str]:
    """The findings of a check: how much was looked at, and the anchor."""
    lines = [
        f"{counted(done.troubles, 'trouble') if done.troubles else 'nothing wrong'}; "
        f"{counted(done.links, 'link')} in the chain of hashes"
    ]
    if done.migrated is not None:
        lines.append(
            f"{counted(done.from_migration, 'link')} of them were made on {done.migrated}, when the chain "
            "was introduced: they say nothing of changes before that"
        )
    if done.anchor_at is not None:
        later = done.links - done.anchor_at
        lines.append(f"the anchor is link {done.anchor_at}; {counted(later, 'link')} came after it")
    if done.anchor and not done.troubles:
        lines.append(f"anchor: {done.anchor}")
        lines.append(
            "keep it elsewhere; kernelproof db check --anchor HASH finds a chain that was computed anew"
        )
    return lines
