"""Templates: the packaged ones, a user's own, and what is said about a broken one."""

from __future__ import annotations

import ast
import shutil
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from kernelproof.backends import names
from kernelproof.errors import UsageError
from kernelproof.hashing import sha256_json
from kernelproof.prompting import Failure, first_prompt, list_templates, open_template, repair_prompt
from kernelproof.prompting.templates import example
from kernelproof.runs.tuning_template import read_template
from kernelproof.types import Response, Status
from tests.prompting.material import problem


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A copy of a packaged template, as a user would start from."""
    folder = tmp_path / "mine"
    with as_file(files("kernelproof.prompts").joinpath("basic-v1")) as packaged:
        shutil.copytree(packaged, folder)
    return folder


def test_every_packaged_template_renders_for_the_backends_that_it_has_words_for() -> None:
    templates = list_templates()
    assert "basic-v1" in [template.name for template in templates]
    for template in templates:
        assert template.description
        assert Path(template.where).name == template.name, "the folder is named for name and version"
        for backend in ("cuda", "cpp") if template.name == "basic-v1" else names():
            first = first_prompt(problem(), backend=backend, template=template.name)
            assert (first.template, first.template_sha256) == (template.name, template.sha256(backend))
            second = repair_prompt(
                problem(),
                backend=backend,
                template=template.name,
                previous=first,
                response=Response(text="x"),
                failure=Failure(status=Status.CRASH),
            )
            assert second.template_sha256 == first.template_sha256


def test_a_folder_of_the_users_own_is_given_by_its_path(own: Path) -> None:
    (own / "system.j2").write_text("Only this.")
    (own / "template.toml").write_text('name = "mine"\nversion = 3\ndescription = "short"\n')
    prompt = first_prompt(problem(), backend="cpp", template=str(own))
    assert prompt.template == "mine-v3"
    assert prompt.system == "Only this.\n"


def test_a_copy_is_the_same_template_and_an_edit_another(own: Path) -> None:
    packaged = open_template("basic-v1").sha256("cpp")
    assert open_template(str(own)).sha256("cpp") == packaged
    (own / "notes.txt").write_text("not part of it")
    assert open_template(str(own)).sha256("cpp") == packaged
    (own / "repair.j2").write_text((own / "repair.j2").read_text() + "!")
    assert open_template(str(own)).sha256("cpp") != packaged


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("user.j2", "one\n{{ nothing }}", "user.j2.*'nothing' is undefined"),
        ("user.j2", "one\n{{ problem.colour }}", "colour"),
        ("user.j2", "one\n{% if %}", "user.j2, line 2"),
        ("user.j2", "{% include 'absent.j2' %}", "absent.j2"),
        ("user.j2", "{{ size | shout }}", "shout"),
        ("template.toml", "name = ", "template.toml"),
        ("template.toml", 'name = "x"\nversion = "1"\ndescription = ""', "version as int"),
        ("repair.j2", None, "lacks repair.j2"),
    ],
)
def test_a_broken_template_is_named_with_its_file(own: Path, file: str, text: str | None, says: str) -> None:
    (own / file).unlink()
    if text is not None:
        (own / file).write_text(text)
    with pytest.raises(UsageError, match=says) as caught:
        first_prompt(problem(), backend="cpp", template=str(own))
    assert str(own) in str(caught.value)


def test_a_template_may_be_split_into_files(own: Path) -> None:
    (own / "part.j2").write_text("for {{ backend }}")
    (own / "system.j2").write_text("{% include 'part.j2' %}")
    assert first_prompt(problem(), backend="cpp", template=str(own)).system == "for cpp\n"


def test_a_path_that_is_no_folder_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a folder"):
        open_template(str(tmp_path / "none"))


@pytest.mark.parametrize("backend", ["cuda", "cpp"])
def test_the_worked_example_keeps_the_rules(backend: str) -> None:
    reference, answer = (ast.parse(text) for text in example(backend).values())
    classes = [node.name for node in answer.body if isinstance(node, ast.ClassDef)]
    assert classes == ["ModelNew"]
    assert not [node for node in answer.body if isinstance(node, ast.FunctionDef)]
    calls = [node for node in ast.walk(answer) if isinstance(node, ast.Call)]
    assert sum(isinstance(call.func, ast.Name) and call.func.id == "load_inline" for call in calls) == 1
    assert _forward(answer) == _forward(reference)


def _forward(tree: ast.Module) -> str:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "forward")
    return ast.unparse(next(nodes).args)


FROZEN = {
    "basic-v1": "cee14ab41ea2cff45399898686dc0e2d06890aa6479156a56a2aaeb588f9a1c9",
    "basic-v2": "cb30a39c88a5de4a7363937ee11b622d78791a1aef249cb8da73a560031cb3ea",
    "basic-v3": "330165e761c62e571ce322416c26e8304befe935be330479e07e17e6c1ec7e77",
}
"""Templates that have results, by the SHA-256 of their files."""


def test_a_template_that_has_results_never_changes() -> None:
    found = {name: sha256_json(dict(open_template(name).files)) for name in FROZEN}
    assert found == FROZEN


def test_a_template_may_extend_a_packaged_one(tmp_path: Path) -> None:
    facts = 'name = "mine"\nversion = 1\ndescription = "short"\nextends = "basic-v4"\n'
    (tmp_path / "template.toml").write_text(facts)
    (tmp_path / "system.j2").write_text("{% include 'basic-v4/system.j2' %}\n\nOne rule more.")
    mine = first_prompt(problem(), backend="cpp", template=str(tmp_path))
    theirs = first_prompt(problem(), backend="cpp", template="basic-v4")
    assert mine.user == theirs.user
    assert mine.system.split() == [*theirs.system.split(), "One", "rule", "more."]
    assert mine.template == "mine-v1" and mine.template_sha256 != theirs.template_sha256
    (tmp_path / "template.toml").write_text(facts.replace("basic-v4", "../examples"))
    with pytest.raises(UsageError, match=r"extends '\.\./examples', which is no packaged template"):
        open_template(str(tmp_path))


def test_tunable_asks_for_declarations_that_tune_reads() -> None:
    system = first_prompt(problem(), backend="cuda", template="tunable-v1").system
    source = system.partition("```\n")[2].partition("```")[0]
    tunable = read_template(f'SOURCE = """\n{source}"""\n')
    assert tunable.named(tunable.original) == {"TILE": 32, "THREADS": 256}
    assert {"plan.j2", "plans.j2"} <= set(open_template("tunable-v1").files)
