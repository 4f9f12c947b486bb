"""One file: what is read from it, and what is said about a file that is no problem."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelproof.errors import UsageError
from kernelproof.hashing import sha256_text
from kernelproof.problems import read_problem
from tests.problems.trees import scale_source, write

SIZES = 'SIZES = {"full": {"ROWS": 64}, "small": {"ROWS": 3, "FACTOR": 0.5}}\n'


def test_a_numbered_file_in_a_level_folder(tmp_path: Path) -> None:
    text = scale_source(sizes=SIZES)
    problem = read_problem(write(tmp_path / "level2" / "07_scale_it.py", text), suite="mine")
    assert (problem.id, problem.level, problem.name, problem.suite) == ("level2/7", 2, "scale_it", "mine")
    assert (problem.source, problem.sha256) == (text, sha256_text(text))
    assert problem.sizes == {"full": {"ROWS": 64}, "small": {"ROWS": 3, "FACTOR": 0.5}}
    assert (problem.signature.init, problem.signature.forward) == (("factor",), ("x",))
    assert problem.summary == "Scaling by a constant."


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        ("level1/softmax.py", "level1/softmax"),
        ("mine/3_softmax.py", "mine/3"),
        ("mine/softmax.py", "softmax"),
        ("level1/52_Argmin_over_a_dimension.py", "level1/52"),
    ],
)
def test_ids_come_from_folder_and_number(tmp_path: Path, file: str, wanted: str) -> None:
    problem = read_problem(write(tmp_path / file))
    assert problem.id == wanted
    assert problem.suite == "file"


def test_a_file_without_sizes_has_one_that_changes_nothing(tmp_path: Path) -> None:
    assert read_problem(write(tmp_path / "a.py")).sizes == {"full": {}}


def test_nothing_in_the_file_is_run(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    text = scale_source() + f"\nopen({str(trace)!r}, 'w').close()\n"
    read_problem(write(tmp_path / "a.py", text))
    assert not trace.exists()


def test_signatures_name_every_kind_of_parameter(tmp_path: Path) -> None:
    text = scale_source().replace(
        "def forward(self, x):", "def forward(self, x, /, y=1, *rest, mask, **more):"
    )
    problem = read_problem(write(tmp_path / "a.py", text))
    assert problem.signature.forward == ("x", "y", "*rest", "mask", "**more")


@pytest.mark.parametrize("bases", ["Base", "Mixin, Base"])
def test_methods_of_a_base_class_in_the_file_count(tmp_path: Path, bases: str) -> None:
    text = scale_source().replace("class Model(nn.Module):", "class Base(nn.Module):")
    text += f"\n\nclass Mixin:\n    pass\n\n\nclass Model({bases}):\n    '''Says the class.'''\n"
    text = text.replace('"""Scaling by a constant."""\n', "")
    problem = read_problem(write(tmp_path / "a.py", text))
    assert (problem.signature.init, problem.signature.forward) == (("factor",), ("x",))
    assert problem.summary == "Says the class."


@pytest.mark.parametrize(
    ("change", "line", "message"),
    [
        (("class Model", "class Modell"), 1, "defines no `class Model"),
        (("def get_inputs", "def inputs"), 1, "defines no `def get_inputs()`"),
        (("def get_init_inputs", "def init_inputs"), 1, "defines no `def get_init_inputs()`"),
        (("def get_inputs()", "def get_inputs(rows)"), 19, "called without arguments"),
        (("        return x", "        return (x"), 16, "does not parse as Python"),
        (("FACTOR = 2.0", "FACTOR = 2.0\nSIZES = make()"), 8, "must be a literal"),
        (("FACTOR = 2.0", "FACTOR = 2.0\nSIZES = [1]"), 8, "dict of dicts"),
        (("FACTOR = 2.0", 'FACTOR = 2.0\nSIZES = {"full": 3}'), 8, "must be a dict of constants"),
        (("FACTOR = 2.0", 'FACTOR = 2.0\nSIZES = {"small": {}}'), 8, "lacks the preset 'full'"),
        (("FACTOR = 2.0", 'FACTOR = 2.0\nSIZES = {"full": {"COLS": 3}}'), 8, "names COLS"),
        (("FACTOR = 2.0", 'FACTOR = 2.0\nSIZES = {"full": {"ROWS": (3, 4)}}'), 8, "a list of these"),
        (
            ("FACTOR = 2.0", 'FACTOR = 2.0 * ROWS\nSIZES = {"full": {"ROWS": 3}}'),
            7,
            "FACTOR is computed from ROWS",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, change: tuple[str, str], line: int, message: str
) -> None:
    path = write(tmp_path / "a.py", scale_source().replace(*change))
    with pytest.raises(UsageError) as caught:
        read_problem(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert message in str(caught.value)


def test_a_file_that_is_no_text_and_one_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_problem(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_problem(path)


literals = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


@given(
    full=st.dictionaries(st.sampled_from(["ROWS", "FACTOR"]), literals),
    small=st.dictionaries(st.sampled_from(["ROWS", "FACTOR"]), literals),
)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_sizes_are_read_as_written_and_survive_json(
    tmp_path: Path, full: dict[str, object], small: dict[str, object]
) -> None:
    sizes = {"full": full, "small": small}
    problem = read_problem(write(tmp_path / "a.py", scale_source(sizes=f"SIZES = {sizes!r}\n")))
    assert problem.sizes == sizes
    assert json.loads(problem.model_dump_json())["sizes"] == sizes


@given(text=st.text(max_size=200) | st.binary(max_size=200))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_file_holds_the_answer_is_a_usage_error(tmp_path: Path, text: str | bytes) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    with pytest.raises(UsageError):
        read_problem(path)
