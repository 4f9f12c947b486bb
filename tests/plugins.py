"""Packages as people install them beside kernelproof: a module, and metadata that names its entry points."""

from __future__ import annotations

from pathlib import Path


def install(folder: Path, package: str, source: str, **points: dict[str, str]) -> Path:
    """Puts a package of one module into `folder`, which then has to be on the path.

    `points` are entry points by the last word of their group: `providers={"echo": "my_echo:Echo"}`.
    """
    folder.mkdir(exist_ok=True)
    (folder / f"{package}.py").write_text(source)
    metadata = folder / f"{package}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    sections = [
        f"[kernelproof.{group}]\n" + "".join(f"{name} = {value}\n" for name, value in named.items())
        for group, named in points.items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(sections))
    return folder
