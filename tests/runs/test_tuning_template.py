"""Parameters of a source: which are seen, what is put in their place, and what is refused."""

from __future__ import annotations

import pytest

from kernelproof.errors import UsageError
from kernelproof.runs.tuning.template import read_template

CUDA = '''
source = r"""
// tune: TILE = 16 | 32 | 64
// tune where: TILE * TILE * 4 <= 16384
constexpr int TILE = 32;
#define UNROLL 4u  /* tune: UNROLL = 1 | 4 | 8 */
__shared__ float tile[TILE][TILE];  // 32 of 32
"""
module = load_inline("tiled", cuda_sources=source, extra_cuda_cflags=["-O3"])
'''
TRITON = """
# tune: BLOCK = 128, 256, 512
# tune: num_warps = 2, 4, 8
# tune where: BLOCK >= num_warps * 32
def forward(self, x):
    grid = (triton.cdiv(n, 256),)
    kernel[grid](x, y, n, BLOCK=256, num_warps=4)
    return y
"""


def test_declared_parameters_are_put_in_place_and_nothing_else_changes() -> None:
    template = read_template(CUDA)
    assert template.declared
    assert [(p.name, p.value, p.values, p.line) for p in template.parameters] == [
        ("TILE", 32, (16, 32, 64), 5),
        ("UNROLL", 4, (1, 4, 8), 6),
    ]
    assert template.filled(template.original) == CUDA
    expected = CUDA.replace("int TILE = 32", "int TILE = 64").replace("UNROLL 4u", "UNROLL 8u")
    assert template.filled((64, 8)) == expected


def test_python_and_keyword_arguments() -> None:
    template = read_template(TRITON)
    assert template.size == 9 and template.allowed == 8
    filled = template.filled((512, 8))
    assert "BLOCK=512, num_warps=8)" in filled and "cdiv(n, 256)" in filled


def test_every_place_of_a_name_changes_together() -> None:
    source = "# tune: BLOCK = 64 | 128\nBLOCK: tl.constexpr = 64\nflags = ['-DBLOCK=64']\n#define BLOCK 64\n"
    filled = read_template(source).filled((128,))
    assert filled.count("128") == 4 and filled.count("64") == 1


def test_a_commented_out_definition_stays() -> None:
    source = "// tune: A = 1 | 2\n// constexpr int A = 7;\nconstexpr int A = 1;\n"
    assert read_template(source).filled((2,)).endswith("// constexpr int A = 7;\nconstexpr int A = 2;\n")


def test_powers_of_two_are_found_where_nothing_is_declared() -> None:
    source = (
        "constexpr int TILE = 32;\nstatic constexpr unsigned int BLOCK = 4096u;\n#define UNROLL 2\n"
        "constexpr int WARP_SIZE = 32;\nconstexpr int COUNT = 100;\n#define ONE 1\n"
        "constexpr float X = 2.0f;\n    const int threads = 256;\nconst int blocks = 2 * n;\n"
        "constexpr int TWICE = 8;\nnamespace b { constexpr int TWICE = 16; }\n// constexpr int OLD = 8;\n"
    )
    template = read_template(source)
    assert not template.declared
    assert {p.name: p.values for p in template.parameters} == {
        "TILE": (8, 16, 32, 64, 128),
        "BLOCK": (1024, 2048, 4096),
        "UNROLL": (1, 2, 4, 8),
        "threads": (64, 128, 256, 512, 1024),
    }


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 3\n", "no parameter was found"),
        ("// tune: TILE\nconstexpr int TILE = 2;", "cannot be read"),
        ("// tune: TILE = 2 | big\nconstexpr int TILE = 2;", "cannot be read"),
        ("// tune: TILE = 2 | 4\n", "nothing gives it a whole number"),
        ("// tune: A = 2 | 4\n// tune: A = 8\nconstexpr int A = 2;", "declared twice"),
        ("// tune: A = 2 | 4\nconstexpr int A = 2;\nconstexpr int A = 4;", "several values"),
        ("// tune: A = 2 | 4\nconstexpr int A = 2 * N;", "nothing gives it a whole number"),
        ("// tune: A = 2 | 4\n// tune where: A > 2\nconstexpr int A = 2;", "own values do not meet"),
        ("// tune: A = 2 | 9999999999\nconstexpr int A = 2;", "values up to"),
        (f"// tune: A = {'9' * 5000}\nconstexpr int A = 2;", "cannot be read"),
        (f"// tune: A = 2\nconstexpr int A = {'9' * 5000};", "nothing gives it a whole number"),
        ("constexpr int A = 2;\n" * 10_000, "too long"),
        ("".join(f"#define A{i} 2\n" for i in range(17)), "more than the 16 parameters"),
        ("".join(f"// tune: A{i} = 2\n#define A{i} 2\n" for i in range(17)), "more than the 16 parameters"),
        ("// tune: A = 2\nint A = 2;\n" + "// tune where: A > 1\n" * 65, "too many conditions: 65"),
    ],
)
def test_what_makes_no_sense_is_said(source: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_template(source)


@pytest.mark.parametrize(
    "condition",
    [
        "__import__('os').system('touch /tmp/x') == 0",
        "A.__class__ == 1",
        "A ** 99999999 > 1",
        "(lambda: 1)() == 1",
        "[A][0] == 1",
        "A == 'x'",
        "A == 1.5",
        "A == True",
        "B <= 4",
        "A",
        "A <",
        "A <= 4 or A == 2",
        "(" * 150 + "A" + ")" * 20,
        "A <= " + "1" * 300,
        "A <= 4\0",
    ],
)
def test_a_condition_is_arithmetic_and_nothing_else(condition: str) -> None:
    with pytest.raises(UsageError, match="the condition"):
        read_template(f"// tune: A = 2 | 4\n// tune where: {condition}\nconstexpr int A = 2;\n")


def test_conditions_exclude() -> None:
    where = "# tune where: 16 <= A * B < 64\n# tune where: B % A == 0\n# tune where: 8 // (A - 8) != 0\n"
    template = read_template(f"# tune: A = 2, 4, 8\n# tune: B = 8, 16\n{where}A = 2\nB = 8\n")
    assert list(template.combinations()) == [(2, 8), (2, 16), (4, 8)]
