"""The command that installs an extra is one that works where it is read."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernelproof.errors import install_command

ROOT = Path(__file__).parents[1]
IN_A_CLONE = re.compile(r"(?P<pip>\S+) install -e '(?P<place>.+)\[serve\]'")


def test_in_a_clone_it_is_the_clones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    pip = ROOT / ".venv" / "bin" / "pip"
    monkeypatch.setattr(sys, "executable", str(pip.with_name("python")))
    monkeypatch.chdir(ROOT)
    assert install_command("serve") == ".venv/bin/pip install -e '.[serve]'"
    monkeypatch.chdir("/")
    assert install_command("serve") == f"{pip} install -e '{ROOT}[serve]'"


def test_another_environments_pip_is_named_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/python/bin/python3")
    monkeypatch.chdir(ROOT)
    assert install_command("serve") == f"/opt/python/bin/pip install -e '{ROOT}[serve]'"


def test_it_names_a_project_that_has_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    match = IN_A_CLONE.fullmatch(install_command("serve"))
    assert match and "serve =" in (Path(match["place"]) / "pyproject.toml").read_text()
    assert Path(match["pip"]).parent == Path(sys.executable).parent


def test_elsewhere_it_is_the_package(tmp_path: Path) -> None:
    (tmp_path / "site" / "kernelproof").mkdir(parents=True)
    module = tmp_path / "site" / "kernelproof" / "errors.py"
    module.write_text((ROOT / "pipeline" / "errors.py").read_text())
    code = "from kernelproof.errors import install_command; print(install_command('serve'), end='')"
    place = {"PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env=place, capture_output=True, text=True, check=True
    )
    assert done.stdout == "pip install 'kernelproof[serve]'"


def test_no_other_place_has_a_command_of_its_own() -> None:
    files = [file for folder in ("pipeline", "db") for file in (ROOT / folder).rglob("*.py")]
    named = [file.name for file in files if re.search(r"pip install '?kernelproof\[", file.read_text())]
    assert named == ["errors.py"]
