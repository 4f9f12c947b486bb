"""Each rule on a source that breaks it and on one that comes close and does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelproof.problems import read_problem
from kernelproof.types import Severity, Status
from kernelproof.verifier.policy import RULES, review
from tests.policy.examples import EXAMPLES, before
from tests.policy.samples import CLEAN, CLEAN_CPP, PROBLEM, REFERENCE, changed, findings

DRAWS = """

def get_inputs():
    return []


def get_init_inputs():
    return [1]
"""
BROKEN = [(rule, source) for rule, (bad, _) in EXAMPLES.items() for source in bad]
KEPT = [(rule, source) for rule, (_, good) in EXAMPLES.items() for source in good]


@pytest.mark.parametrize(("rule", "source"), BROKEN)
def test_the_rule_finds_it(rule: str, source: str) -> None:
    found = findings(source, rule)
    declared = next(entry for entry in RULES if entry.name == rule)

    assert found
    assert found[0].severity is declared.severity
    assert found[0].status is declared.status


@pytest.mark.parametrize(("rule", "source"), KEPT)
def test_the_rule_lets_it_pass(rule: str, source: str) -> None:
    assert findings(source, rule) == []


def test_each_rule_has_examples() -> None:
    assert set(EXAMPLES) == {rule.name for rule in RULES}


def test_only_errors_have_a_status() -> None:
    for rule in RULES:
        assert (rule.severity is Severity.ERROR) == (
            rule.status in {Status.SYNTAX_ERROR, Status.CONTRACT_ERROR}
        )


def test_a_clean_program_has_no_findings() -> None:
    assert review(CLEAN, PROBLEM, "cuda") == ()
    assert review(CLEAN_CPP, PROBLEM, "cpp") == ()


def test_a_finding_says_where() -> None:
    source = before("import socket")

    (finding,) = findings(source, "forbidden_import")

    assert finding.line is not None
    assert source.splitlines()[finding.line - 1] == "import socket" == finding.evidence


def test_a_syntax_error_is_the_only_finding() -> None:
    (finding,) = review("import socket\ndef f(:\n", PROBLEM, "cuda")

    assert (finding.rule, finding.line, finding.evidence) == ("syntax_error", 2, "def f(:")


def test_an_unknown_signature_is_not_judged() -> None:
    problem = PROBLEM.model_copy(update={"signature": type(PROBLEM.signature)(), "source": ""})

    source = changed("def forward(self, x, y)", "def forward(self, y, x, z)")

    assert review(source, problem, "cuda") == ()
    assert review(source, PROBLEM, "cuda") != ()


def test_the_cpp_backend_needs_a_function_and_no_device_kernel() -> None:
    body = CLEAN_CPP[CLEAN_CPP.index("// cuda") : CLEAN_CPP.index('"""\n\next')]

    assert findings(CLEAN_CPP, "no_inline_kernel", "cpp") == []
    assert findings(changed(body, "", CLEAN_CPP), "no_inline_kernel", "cpp")


@pytest.mark.parametrize(
    "taken",
    ["width, scale=2.0, **kwargs", "width, *sizes", "width, *, scale=2.0", "width, /, scale=2.0, **kwargs"],
)
def test_a_reference_fits_itself_however_it_takes_its_arguments(tmp_path: Path, taken: str) -> None:
    file = tmp_path / "1_scale.py"
    reference = REFERENCE.replace("width, scale=2.0", taken)
    file.write_text(f"{reference}\n{DRAWS}")
    problem = read_problem(file)
    heir = reference.replace("class Model(", "class Base(") + "\n\nclass Model(Base):\n    pass\n"
    again = f"{reference}\n\n_Once = Model\n\n\nclass Model(_Once):\n    pass\n"

    for source in (reference, heir, again):
        asked = problem.model_copy(update={"source": source})
        found = review(f"{source}\n\nModelNew = Model\n", asked, "cuda")
        assert not [each for each in found if each.status is Status.CONTRACT_ERROR]


@pytest.mark.parametrize("base", ["Model", "Base"])
def test_a_base_from_elsewhere_may_bring_what_the_file_does_not_show(tmp_path: Path, base: str) -> None:
    file = tmp_path / "problem.py"
    file.write_text(f"{REFERENCE}\n{DRAWS}")
    source = f"from elsewhere import Model as {base}\n\n\nclass Model({base}):\n    pass\n"
    asked = read_problem(file).model_copy(update={"source": source})
    found = review(f"{REFERENCE.replace('class Model(', 'class ModelNew(')}\n", asked, "cuda")
    assert not [each for each in found if each.status is Status.CONTRACT_ERROR]


def test_a_base_of_the_file_may_have_forward_by_assignment() -> None:
    base = CLEAN.replace("class ModelNew(nn.Module):", "class Fast(nn.Module):").replace(
        "def forward(", "def run("
    )
    source = f"{base}\nFast.forward = Fast.run\n\n\nclass ModelNew(Fast):\n    pass\n"
    assert findings(source, "missing_forward") == []
