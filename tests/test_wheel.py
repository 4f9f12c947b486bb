"""The wheel, built and installed in a fresh environment, beside a project with a `pipeline` and a `db`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "pipeline", "db", "prompts", "reference_models")
FOREIGN = ("pipeline", "db", "prompts", "reference_models")
USERS = """
import sys
with open({log!r}, "a") as log:
    log.write(f"{{sys.argv[0]}}\\n")
OWNER = "the user"
"""
USE = """
import sys
from pathlib import Path
import db, pipeline, prompts, reference_models
from kernelproof import Verifier, verify

assert {db.OWNER, pipeline.OWNER, prompts.OWNER, reference_models.OWNER} == {"the user"}
assert "torch" not in sys.modules
found = verify(Path("add.py"), Path("model.py"), backend="cpp", trials=1, measure=False)
print(found.status, found.reason)
print(Verifier.__module__, "torch" in sys.modules)
"""
COPY = ("--backend", "cpp", "--size", "small")


@dataclass
class Installed:
    """An environment that holds the wheel, and the user's project from which it is used."""

    python: Path
    project: Path
    environment: Mapping[str, str]

    def run(self, *command: str | Path) -> str:
        """What a command prints that runs in the project."""
        done = subprocess.run(
            list(map(str, command)),
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def kernelproof(self, *arguments: str) -> str:
        """What the installed command prints."""
        return self.run(self.python.with_name("kernelproof"), *arguments)

    def importers(self) -> set[str]:
        """The programs that have imported one of the user's packages so far."""
        log = self.project / "imports.log"
        return set(log.read_text().splitlines()) if log.exists() else set()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the sources, with setuptools as it is installed here."""
    pytest.importorskip("pip")
    copy, out = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("wheel")
    for folder in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.sqlite*")
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=ignored)
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, copy)
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(out), str(copy))
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, cache: Path) -> Iterator[Installed]:
    """Not below the tests' directory, which is closed to the user ids that sandboxes run under."""
    place = Path(tempfile.mkdtemp(prefix="kernelproof-test-"))
    place.chmod(0o755)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place / "env")], check=True)
    python = place / "env" / "bin" / "python"
    pip("--python", str(python), "install", "--no-deps", "--no-index", str(wheel))
    site = sysconfig.get_path("purelib", vars={"base": str(place / "env")})
    # The packages that it needs are those of this environment; a copy of torch would take minutes.
    others = [entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]
    Path(site, "packages_of_the_tests.pth").write_text("\n".join(others) + "\n")
    locks = {"KERNELPROOF_LOCKS": os.environ["KERNELPROOF_LOCKS"], "KERNELPROOF_CACHE": str(cache)}
    yield Installed(python, users_project(place / "project"), plain_environment() | locks)
    shutil.rmtree(place, ignore_errors=True)


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    environment = plain_environment()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def plain_environment() -> dict[str, str]:
    """The caller's variables without those that lead Python or kernelproof to this checkout."""
    foreign = ("KERNELPROOF_", "PYTHON", "OPENAI_")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}


def users_project(folder: Path) -> Path:
    """A project whose packages have the names of our folders; each writes down which program imports it."""
    for name in FOREIGN:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(USERS.format(log=str(folder / "imports.log")))
    shutil.copy(ROOT / "prompts" / "examples" / "cpp.py", folder / "add.py")
    shutil.copy(ROOT / "prompts" / "examples" / "model.py", folder / "model.py")
    (folder / "use.py").write_text(USE)
    return folder


@pytest.mark.ci
def test_it_holds_one_package_with_every_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (record,) = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD")]
        listed = [line.split(",")[0] for line in archive.read(record).decode().splitlines()]
    assert {name.partition("/")[0] for name in listed} == {"kernelproof", record.partition("/")[0]}
    held = {name.removeprefix("kernelproof/") for name in listed if name.startswith("kernelproof/")}
    ours = {
        str(file.relative_to(ROOT)).removeprefix("pipeline/")
        for folder in FOREIGN
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts and ".sqlite" not in file.name
    }
    assert held == ours - {"db/README.md"}
    assert {
        "py.typed",
        "verifier/build/bindings/glue.cpp",
        "prompts/recorded/cpp.jsonl",
    } < held


@pytest.mark.ci
def test_verify_works_beside_a_pipeline_and_a_db_of_the_users(installed: Installed) -> None:
    said = installed.run(installed.python, "use.py").splitlines()
    assert said == ["correct every check passed", "kernelproof.api.verifier False"]
    assert installed.importers() == {"use.py"}  # no process of ours imported the user's packages


@pytest.mark.ci
def test_the_command_and_its_texts_are_there(installed: Installed) -> None:
    assert installed.kernelproof("--help").startswith("Usage: kernelproof")
    assert "level1/1" in installed.kernelproof("problems", "list")
    assert "ModelNew" in installed.kernelproof("problems", "prompt", "level1/1", "--backend", "cpp")


@pytest.mark.ci
def test_recorded_answers_become_a_leaderboard(installed: Installed) -> None:
    """The workspace is the project: its database is written into the user's own `db/`."""
    command = ("generate", "level1/1", "--model", "replay:demo", "--samples", "1", "--seconds", "1")
    installed.kernelproof(*command, *COPY)
    assert (installed.project / "db" / "attempts.sqlite").exists()
    assert "level1/1" in installed.kernelproof("leaderboard", "--backend", "cpp")
    assert "correct" in installed.kernelproof("show", "1")
    assert installed.importers() <= {"use.py"}
