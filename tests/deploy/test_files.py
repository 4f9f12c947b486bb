"""deploy/ and .github/: the files parse, their commands exist, and their versions are this package's."""

from __future__ import annotations

import argparse
import configparser
import itertools
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kernelproof.cli.app import command_line
from kernelproof.version import __version__
from scripts.release_notes import notes

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = [DEPLOY / "compose.yaml", DEPLOY / "compose.gpu.yaml"]
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()


def parsed(path: Path) -> dict[Any, Any]:
    return dict(yaml.safe_load(path.read_text()))


def known(words: list[str]) -> None:
    """Fails unless the command line has this command with these options."""
    command: Any = typer.main.get_command(command_line())
    rest = list(words)
    while hasattr(command, "commands"):
        assert rest and rest[0] in command.commands, f"there is no command {words}"
        command = command.commands[rest.pop(0)]
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    for word in rest:
        if word.startswith("--"):
            assert word.partition("=")[0] in options, f"{words[0]} has no {word}"


def compose_commands() -> list[list[str]]:
    services = [s for path in COMPOSE for s in parsed(path)["services"].values()]
    return [service["command"] for service in services if "command" in service]


def unit_commands() -> list[list[str]]:
    starts = re.findall(r"^ExecStart=\S+/kernelproof (.+)$", "\n".join(u.read_text() for u in UNITS), re.M)
    return [shlex.split(line) for line in starts]


def documented_commands() -> list[list[str]]:
    """Commands of the page, and of comments in compose.yaml, that run in a service's container or a unit."""
    text = (ROOT / "docs" / "guide" / "deploy.md").read_text() + COMPOSE[0].read_text()
    lines = re.findall(
        r"(?:run --rm (?:api|judge|builder)|/opt/kernelproof/bin/kernelproof) ([a-z][^\n#(`]*)", text
    )
    return [shlex.split(line) for line in lines]


@pytest.mark.parametrize("find", [compose_commands, unit_commands, documented_commands])
def test_commands_exist(find: Any) -> None:
    commands = find()
    assert len(commands) >= 2
    for words in commands:
        known(words)


def test_images_are_named_by_the_packages_version() -> None:
    pages = [ROOT / "docs" / "guide" / name for name in ("deploy.md", "recipes.md")]
    files = [*COMPOSE, DEPLOY / "Dockerfile", *pages]
    named = [v for file in files for v in re.findall(r"kernelproof:(\d[\d.]*\d)", file.read_text())]
    assert len(named) >= 6 and set(named) == {__version__}


def test_interpreters_and_torch_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    least = tuple(map(int, re.findall(r"\d+", project["requires-python"])))
    for workflow in WORKFLOWS:
        for version in re.findall(r'python(?:-version)?: "([\d.]+)"', workflow.read_text()):
            assert tuple(map(int, version.split("."))) >= least
    tried = parsed(ROOT / ".github/workflows/tests.yml")["jobs"]["versions"]["strategy"]["matrix"]
    minors = {int(version.split(".")[1]) for version in tried["torch"]}
    (torch,) = (each for each in project["dependencies"] if each.startswith("torch"))
    assert torch == f"torch>=2.{min(minors)},<2.{max(minors) + 1}"
    extras = re.findall(r"^ENV EXTRAS=(\S+)", DOCKERFILE, re.M)
    assert len(extras) == 2 and set(",".join(extras).split(",")) <= set(project["optional-dependencies"])
    base = re.search(r"^ARG CUDA_BASE=nvidia/cuda:(\d+)\.(\d+)", DOCKERFILE, re.M)
    index = re.search(r"whl/cu(\d+)", DOCKERFILE)
    assert base is not None and index is not None and index[1] == base[1] + base[2]


def test_the_lock_holds_a_version_that_is_allowed_of_each_package() -> None:
    pins = dict(line.split("==") for line in (ROOT / "tests" / "lock.txt").read_text().splitlines()[1:])
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    own = next(Requirement(each) for each in extras["test"] if each.startswith(f"{project['name']}["))
    wanted = [project["dependencies"], extras["lint"], extras["test"], *(extras[name] for name in own.extras)]
    for requirement in map(Requirement, itertools.chain.from_iterable(wanted)):
        if requirement.name not in (project["name"], "setuptools"):
            assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), requirement


def test_what_the_image_copies_is_there_and_is_not_ignored() -> None:
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    allowed = {line[1:] for line in ignored if line.startswith("!")}
    assert all((ROOT / name).exists() for name in allowed)
    copied = re.findall(r"^COPY (?!--from)(\S+) ", DOCKERFILE, re.M)
    assert {name for name in copied if name != "."} <= allowed
    # The package's links, and the files that its metadata names, are part of the wheel.
    links = {"pipeline", "db", "prompts", "reference_models", "src", "pyproject.toml", "README.md", "LICENSE"}
    assert links <= allowed


def test_images_are_chosen_from_stages_that_exist() -> None:
    stages = re.findall(r"^FROM \S+ AS (\S+)$", DOCKERFILE, re.M)
    chosen = [parsed(COMPOSE[0])["x-kernelproof"], parsed(COMPOSE[1])["x-cuda"]]
    devices = [image["build"]["args"]["DEVICE"] for image in chosen]
    assert {f"{device}-base" for device in devices} == {stage for stage in stages if stage.endswith("-base")}


def test_no_image_runs_as_root() -> None:
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    assert last.startswith("${DEVICE}-base ")
    assert re.findall(r"^USER (\S+)", last, re.M) == ["kernelproof"]
    assert last.index("USER") > last.index("useradd")


def test_nothing_is_published_beyond_the_machine_and_no_secret_is_written_down() -> None:
    services = parsed(COMPOSE[0])["services"]
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports and all(port.startswith("127.0.0.1:") for port in ports)
    for path in COMPOSE:
        assert not re.search(r"PASSWORD: |:[^/@\s]+@", path.read_text().replace("docker.io:", ""))
    for name in ("db", "api", "builder", "judge"):
        assert services[name]["secrets"] == ["db_password"]
    assert {"test"} <= services["db"]["healthcheck"].keys() & services["api"]["healthcheck"].keys()


def test_workers_get_the_options_that_doctor_asks_for_and_nothing_more() -> None:
    services = parsed(COMPOSE[0])["services"]
    for name in ("builder", "judge"):
        options = services[name]["security_opt"]
        assert options == ["seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined"]
        assert services[name]["cap_drop"] == ["ALL"] and "privileged" not in services[name]
        assert all(f"--security-opt {option}" in DOCKERFILE for option in options)


def test_the_line_of_docker_gives_what_the_judge_gets() -> None:
    """One container has the worker in it, so it needs the worker's options."""
    (line,) = re.findall(r"^docker run (.+)$", (ROOT / "docs/guide/recipes.md").read_text(), re.M)
    parser = argparse.ArgumentParser(exit_on_error=False)
    for name in ("--rm", "--init"):
        parser.add_argument(name, action="store_true")
    for name in ("--cap-drop", "--security-opt", "-v"):
        parser.add_argument(name, action="append")
    parser.add_argument("--network")
    parser.add_argument("image")
    parser.add_argument("command", nargs="+")
    run = parser.parse_args(shlex.split(line))
    judge = parsed(COMPOSE[0])["services"]["judge"]
    assert {name: getattr(run, name) for name in ("init", "security_opt", "cap_drop", "image")} == {
        name: judge[name] for name in ("init", "security_opt", "cap_drop", "image")
    }
    # It listens on the loopback alone, where only the host's network reaches it.
    assert run.rm and run.network == "host" and "--host" not in run.command
    assert run.v == ["kernelproof:/data"] and "KERNELPROOF_WORKSPACE=/data" in DOCKERFILE
    known(run.command)


FORBIDDEN = {
    "RestrictNamespaces",
    "PrivateUsers",
    "ProtectKernelTunables",
    "ProtectKernelLogs",
    "ProtectProc",
    "ProcSubset",
    "PrivateDevices",
    "ProtectClock",
    "MemoryDenyWriteExecute",
    "ProtectControlGroups",
}


def settings(unit: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(unit.read_text())
    return dict(parser["Service"])


def test_units_are_confined_as_far_as_the_sandbox_allows() -> None:
    api, workers = (settings(unit) for unit in UNITS)
    assert FORBIDDEN & api.keys() and not FORBIDDEN & workers.keys()
    for unit in (api, workers):
        assert unit["User"] == "kernelproof" and unit["NoNewPrivileges"] == "yes"
        assert unit["ProtectSystem"] == "strict"


def test_workflows_ask_for_no_right_but_reading() -> None:
    assert len(WORKFLOWS) == 3
    for path in WORKFLOWS:
        workflow = parsed(path)
        assert workflow["permissions"] == {"contents": "read"}
        triggers = workflow[True]  # YAML 1.1 reads the key `on` so
        for job in workflow["jobs"].values():
            assert job["steps"] and job["timeout-minutes"]
            # Only what publishes may write: it runs none of our code, and is started by a tag.
            assert "permissions" not in job or (
                triggers.keys() == {"push"} and "branches" not in triggers["push"]
            )
            # Code of strangers never runs on a machine of our own.
            assert "self-hosted" not in job["runs-on"] or "pull_request" not in triggers


def test_a_release_has_the_notes_of_its_version(tmp_path: Path) -> None:
    changelog = "# Changelog\n\n## 1.0.0 (today)\n\nNew.\n\n## 0.9.0\n\nOld.\n\n## 0.8.0\n"
    assert [notes(changelog, each) for each in ("1.0.0", "0.9.0", "0.8.0", "1.0")] == [
        "New.",
        "Old.",
        None,
        None,
    ]
    command = [sys.executable, ROOT / "scripts" / "release_notes.py"]
    assert subprocess.run([*command, __version__], capture_output=True).stdout
    wrong = subprocess.run([*command, "9.9.9"], capture_output=True, text=True)
    assert wrong.returncode == 1 and "another version than 9.9.9" in wrong.stderr


def test_workflows_call_targets_that_the_makefile_has() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    text = "".join(path.read_text() for path in WORKFLOWS)
    named = set(re.findall(r"run: make ([a-z-]+)", text)) | set(
        parsed(ROOT / ".github/workflows/tests.yml")["jobs"]["cpu"]["strategy"]["matrix"]["target"]
    )
    assert named and named <= targets


def test_the_entry_point_hands_on_its_words_and_the_password(tmp_path: Path) -> None:
    (tmp_path / "kernelproof").write_text('#!/bin/sh\nprintf "%s|" "$PGPASSWORD" "$@"\n')
    (tmp_path / "kernelproof").chmod(0o755)
    (tmp_path / "secret").write_text("pass word\n")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "PGPASSWORD_FILE": str(tmp_path / "secret")}
    words = [DEPLOY / "entrypoint.sh", "workers", "--places", "a b"]
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout == "pass word|workers|--places|a b|"
