"""The 39 shapes in which models' answers arrive: what is taken from each, and what is said about it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from kernelproof.extraction import extract
from kernelproof.types import Response, Status
from tests.extraction.programs import CLASS, CUDA, EXTENSION, GOOD, IMPORTS, REFERENCE, SECOND, fence


@dataclass(frozen=True)
class Case:
    """An answer with what must come of it: a program (`source`) or a status, and all its warnings."""

    name: str
    text: str | None
    source: str | None = GOOD
    status: Status | None = None
    warnings: tuple[str, ...] = ()
    finish: str | None = "stop"
    other: dict[str, str] = field(default_factory=dict)


def no(
    name: str, text: str | None, status: Status, *warnings: str, finish: str = "stop", **other: str
) -> Case:
    """A finish reason that is not the usual one is a warning too."""
    if finish != "stop":
        warnings += (f"finish_reason: {finish}",)
    return Case(name, text, None, status, warnings, finish, other)


def yes(name: str, text: str, *warnings: str, source: str = GOOD) -> Case:
    return Case(name, text, source, None, warnings)


DRAFT = fence(SECOND)
FINAL = fence(GOOD)
IN_STRING = GOOD + 'TAG = "<think>" + "</think>"\nLONG = """\n<think>\n"""\n'
DOCSTRING = GOOD.replace(
    "class ModelNew(nn.Module):\n",
    'class ModelNew(nn.Module):\n    """Doubles.\n\n    Usage:\n```\nModelNew()(x)\n```\n    """\n\n',
)
INDENTED = "".join(f"   {line}\n" if line else "\n" for line in GOOD.splitlines())
CURLY = GOOD.replace('name="scale"', "name=\u201cscale\u201d")
UNBALANCED = GOOD.replace('r"""', 'f"""')
DOUBLED = GOOD.replace("{ y[i]", "{{ y[i]").replace("x[i]; }", "x[i]; }}")
NEWLINE = GOOD.replace('r"""', '"""').replace("auto y", 'printf("n\\n"); auto y')
NO_IMPORTS = EXTENSION + CLASS
PROTOTYPE = GOOD.replace("scale(torch::Tensor x);", "scale(torch::Tensor x, int n);")
ALIASED = GOOD.replace("class ModelNew", "class Doubled") + "\n\nModelNew = Doubled\n"
GUARDED = IMPORTS + EXTENSION + '\nif __name__ == "__main__":' + CLASS.replace("\n", "\n    ") + "pass\n"
NESTED = IMPORTS + EXTENSION + "\ndef make():" + CLASS.replace("\n", "\n    ") + "return ModelNew\n"
TEST_CODE = GOOD + "\nmodel = ModelNew()\nprint(model(torch.rand(8)))\n"
BOTH = GOOD + REFERENCE.split("\n\n\n")[1] + "\n"
SIZED = GOOD + "\n\ndef get_inputs():\n    return [torch.rand(BATCH, 8)]\n"
MAIN = SIZED + (
    "\n\ndef try_it():\n    torch.manual_seed(SEED)\n    return ModelNew()(*get_inputs())\n"
    '\n\nif __name__ == "__main__":\n    print(try_it(), BATCH)\n'
)
TYPO = GOOD.replace(
    "        super().__init__()\n", "        super().__init__()\n        self.n = BATCH * 2\n"
)
HELPED = GOOD.replace("return ext.scale(x)", "return scaled(x)") + (
    "\n\ndef scaled(x):\n    return ext.scale(x[:BATCH])\n"
)
FROM_FILE = GOOD.replace("cuda_source = r", "unused = r").replace(
    "cuda_sources=cuda_source", 'cuda_sources=open("scale.cu").read()'
)
LAZY = (
    GOOD.replace("ext = load", "def build():\n    return load")
    .replace("    super().__init__()\n", "    super().__init__()\n        self.ops = build()\n")
    .replace("ext.scale", "self.ops.scale")
)
EDIT = "class ModelNew(nn.Module):\n    def forward(self, x):\n        return self.ops.scale(x)\n"
PLACEHOLDER = "class ModelNew(nn.Module):\n    # as above\n    pass\n"
PARTIAL = (
    "class ModelNew(nn.Module):\n    def forward(self, x):\n        ...  # unchanged\n        return x\n"
)
PSEUDO = "class ModelNew:\n    launch one block for each row\n"
CUT = GOOD[: GOOD.index("blockDim")]
DIFF = (
    "--- a/model.py\n+++ b/model.py\n@@ -1,3 +1,4 @@\n import torch\n"
    "-class Model(nn.Module):\n+class ModelNew(nn.Module):\n"
)
UNFENCED_REST = "This doubles each element. It's memory bound, so one pass is best.\n"
HARMONY = (
    "<|start|>assistant<|channel|>analysis<|message|>Draft:\n" + DRAFT + "<|end|>"
    "<|start|>assistant<|channel|>final<|message|>Here:\n" + FINAL + "<|return|>"
)

EMPTY, FILTERED, NO_CODE = Status.EMPTY, Status.FILTERED, Status.NO_CODE
REFUSED, TRUNCATED = Status.REFUSED, Status.TRUNCATED
CASES = [
    yes("01_draft_inside_think", f"<think>\nTry:\n{DRAFT}</think>\n\n{FINAL}", "thinking_removed"),
    yes(
        "02_closer_without_opener",
        f"Try:\n{DRAFT}</think>\n{FINAL}",
        "missing_think_opener",
        "thinking_removed",
    ),
    yes(
        "02_closer_after_unclosed_draft",
        f"Try:\n```python\n{SECOND}\n</think>\n{FINAL}",
        "thinking_removed",
        "missing_think_opener",
    ),
    no("03_unclosed_think", f"<think>\nTry:\n{DRAFT}Wait", TRUNCATED, "unclosed_thinking"),
    no("03_unclosed_think_after_an_answer", f"{FINAL}<think>\nWait", TRUNCATED, "unclosed_thinking"),
    yes("04_nested_think", f"<think>a<think>{DRAFT}</think>b\n{DRAFT}</think>\n{FINAL}", "thinking_removed"),
    yes("04_attributed_think", f'<think duration="3s">\n{DRAFT}</think>\n{FINAL}', "thinking_removed"),
    yes(
        "04_think_mentioned_in_thinking",
        f"<think>\nThe <think> tag.\n{DRAFT}</think>\n{FINAL}",
        "thinking_removed",
    ),
    yes("04_think_inside_a_string_survives", f"Here:\n{fence(IN_STRING)}", source=IN_STRING),
    yes("04_think_inside_a_string_survives_unfenced", IN_STRING, source=IN_STRING),
    no("05_reasoning_apart_content_none", None, EMPTY, "empty_content", reasoning="Let me see."),
    no(
        "05_code_in_the_reasoning_apart",
        None,
        NO_CODE,
        "code_only_in_reasoning",
        "empty_content",
        reasoning=FINAL,
    ),
    no("05_nothing_at_all", " \n", EMPTY, "empty_content"),
    no("05_nothing_but_thinking", "<think>Let me see.</think>\n", EMPTY, "thinking_removed", "empty_content"),
    no("06_empty_content_finish_length", "", TRUNCATED, "empty_content", finish="length"),
    no("07_code_only_in_reasoning", "Done.", NO_CODE, "code_only_in_reasoning", reasoning=FINAL),
    no(
        "07_code_only_in_thinking",
        f"<think>{FINAL}</think>Done.",
        NO_CODE,
        "code_only_in_reasoning",
        "thinking_removed",
    ),
    yes("08_harmony_markers", HARMONY, "channels_removed"),
    yes(
        "08_harmony_markers_stripped",
        f"analysisWe try:\n{DRAFT}assistantfinalHere:\n{FINAL}",
        "channels_removed",
    ),
    no("08_harmony_without_final", HARMONY.partition("<|end|>")[0], TRUNCATED, "unclosed_thinking"),
    yes("08_end_token", FINAL.rstrip() + "<|im_end|>"),
    no("09_refusal", None, REFUSED, refusal="I cannot help with that."),
    no("09_content_filter", FINAL[:60], FILTERED, finish="content_filter"),
    no("09_filtered_by_google", FINAL, FILTERED, finish="SAFETY"),
    no("09_refused_by_anthropic", "", REFUSED, finish="refusal"),
    yes("10_cpp_before_python", f"The kernel:\n{fence(CUDA, 'cpp')}\nThe model:\n{FINAL}"),
    *[
        yes(f"11_info_{info}", f"{fence(CUDA, info)}\n{FINAL}\n{fence(CUDA, info)}")
        for info in ("c++", "cuda", "objective-c")
    ],
    *[
        yes(f"12_info_{number}", f"Here:\n{fence(GOOD, info)}")
        for number, info in enumerate(("Python", "py", "python3", "{.python}", 'python title="a.py"', ""))
    ],
    yes("08_harmony_constrained", HARMONY.replace("final<", "final<|constrain|>text<"), "channels_removed"),
    yes("12_language_on_its_own_line", f"```\npython\n{GOOD}```\n"),
    yes("12_language_without_a_fence", f"python\n{GOOD}"),
    yes("13_fence_in_a_list", f"1. The code:\n\n   ```python\n{INDENTED}   ```\n2. Done.\n"),
    yes("13_fence_after_a_bullet", f"- ```python\n{INDENTED}  ```\n"),
    yes("14_unclosed_fence_complete_code", f"Here:\n```python\n{GOOD}", "unclosed_fence"),
    no("15_unclosed_fence_cut_in_a_string", f"Here:\n```python\n{CUT}", TRUNCATED),
    no("15_the_server_cut_it_in_a_string", f"```python\n{CUT}", TRUNCATED, finish="length"),
    yes("15_nobody_says_it_was_cut", f"```python\n{CUT}", "unclosed_fence", "does_not_parse", source=CUT),
    no("15_cut_after_the_class", f"```python\n{IMPORTS}{CLASS}{EXTENSION[:200]}", TRUNCATED, finish="length"),
    no("15_cut_where_it_parses", f"```python\n{GOOD}", TRUNCATED, "unclosed_fence", finish="length"),
    no("15_cut_without_a_fence", CUT, TRUNCATED, finish="length"),
    yes("15_a_whole_text_that_nobody_cut", CUT, "does_not_parse", source=CUT),
    yes("16_stray_closer_no_opener", f"{GOOD}```\n{UNFENCED_REST}", "opened_without_fence"),
    yes("17_closer_followed_by_prose", f"```python\n{GOOD}``` {UNFENCED_REST}"),
    yes("18_opener_on_a_prose_line", f"Here is the code: ```python\n{GOOD}```\n{UNFENCED_REST}"),
    yes("19_backticks_in_a_docstring", f"Here:\n{fence(DOCSTRING)}", source=DOCSTRING),
    yes("20_four_backticks", f"Here:\n{fence(DOCSTRING, run='````')}", source=DOCSTRING),
    yes("20_tildes", f"Here:\n{fence(GOOD, run='~~~')}"),
    yes("21_crlf", FINAL.replace("\n", "\r\n"), "normalised: line_endings"),
    yes("21_bom", "\ufeff" + FINAL, "normalised: zero_width"),
    yes("21_nbsp", FINAL.replace("    ", "\u00a0   "), "normalised: spaces"),
    yes("21_zero_width", FINAL.replace("class", "\u200bclass"), "normalised: zero_width"),
    yes("21_curly_quotes", fence(CURLY), "curly_quotes_replaced"),
    yes("21_curly_quotes_kept_in_strings", fence(GOOD + "S = '\u201c'\n"), source=GOOD + "S = '\u201c'\n"),
    yes("21_ansi", f"\x1b[1mHere\x1b[0m\n{FINAL}\x1b[?25h", "normalised: ansi"),
    yes("22_usage_block_after", f"{FINAL}Use it:\n{fence('model = ModelNew().cuda()')}"),
    yes("23_last_of_two_versions", f"{DRAFT}Better:\n{FINAL}", "second_version_wins"),
    yes("23_last_version_has_backticks", f"{DRAFT}Better:\n{fence(DOCSTRING)}", source=DOCSTRING),
    yes("23_second_version_cut", f"{FINAL}Better:\n```python\n{CUT}{CLASS}", "later_version_incomplete"),
    no(
        "24_split_over_blocks",
        f"{fence(IMPORTS + EXTENSION)}And:\n{fence(CLASS)}",
        NO_CODE,
        "split_over_blocks: ext",
    ),
    no(
        "24_kernel_in_a_cpp_block",
        fence(CUDA, "cpp") + fence(IMPORTS + EXTENSION.partition('"""\n\n')[2] + CLASS),
        NO_CODE,
        "split_over_blocks: cuda_source",
    ),
    yes("24_program_beside_a_sketch", fence(CUDA, "cpp") + fence(SIZED), source=SIZED),
    yes("24_program_before_a_sketch", fence(SIZED) + "In C++:\n" + fence(CUDA, "cpp"), source=SIZED),
    yes("24_program_in_an_unlabelled_fence", fence(CUDA, "") + fence(SIZED, ""), source=SIZED),
    yes("24_program_in_a_native_fence", fence(CUDA, "cpp") + fence(SIZED, "cuda"), source=SIZED),
    yes(
        "24_sizes_bound_by_the_echoed_reference",
        fence("BATCH = 16\n" + REFERENCE) + fence(CUDA, "cpp") + fence(SIZED),
        "reference_echoed",
        source=SIZED,
    ),
    yes(
        "24_only_a_main_guard_and_a_helper_lack_names",
        fence(CUDA, "cpp") + fence("BATCH = 16\nSEED = 1\n") + fence(MAIN),
        source=MAIN,
    ),
    yes("24_a_size_that_forward_lacks", fence(CUDA, "cpp") + fence(TYPO), source=TYPO),
    no(
        "24_a_size_that_init_lacks_and_another_block_has",
        fence("BATCH = 16\n") + fence(TYPO),
        NO_CODE,
        "split_over_blocks: BATCH",
    ),
    no(
        "24_a_helper_that_forward_calls_is_elsewhere",
        fence("BATCH = 16\n") + fence(HELPED),
        NO_CODE,
        "split_over_blocks: BATCH",
    ),
    no(
        "24_a_test_that_runs_on_import_is_elsewhere",
        fence("BATCH = 16\n") + fence(SIZED + "\nprint(ModelNew()(*get_inputs()))\n"),
        NO_CODE,
        "split_over_blocks: BATCH",
    ),
    no(
        "24_kernel_in_an_unlabelled_fence",
        fence(CUDA, "") + fence(IMPORTS + EXTENSION.partition('"""\n\n')[2] + CLASS),
        NO_CODE,
        "split_over_blocks: cuda_source",
    ),
    no(
        "24_bindings_in_a_cpp_block",
        fence(CUDA, "cpp") + fence(IMPORTS + CLASS),
        NO_CODE,
        "split_over_blocks: ext",
    ),
    yes("24_kernel_read_from_a_file", fence(CUDA, "cuda") + fence(FROM_FILE), source=FROM_FILE),
    yes("24_edit_without_imports_after", f"{FINAL}{fence(EDIT)}", "later_version_incomplete"),
    yes(
        "24_edit_of_forward_after",
        f"{fence(LAZY)}{fence(IMPORTS + EDIT)}",
        "later_version_incomplete",
        source=LAZY,
    ),
    yes("24_edit_in_a_loose_fence_after", f"{fence(LAZY)}Then:\n```python {EDIT}```\n", source=LAZY),
    yes("25_reference_echoed", f"Given:\n{fence(REFERENCE)}Mine:\n{FINAL}", "reference_echoed"),
    yes("25_reference_in_the_same_block", fence(BOTH), "reference_echoed", source=BOTH),
    no("25_only_the_reference", fence(REFERENCE), NO_CODE),
    yes("26_comment_only_block_after", f"{FINAL}{fence('# class ModelNew: see above' + chr(10))}"),
    yes(
        "26_placeholder_after",
        f"{FINAL}{fence(PLACEHOLDER)}",
        "placeholder_skipped",
        "later_version_incomplete",
    ),
    yes("26_partial_after", f"{FINAL}{fence(PARTIAL)}", "placeholder_skipped", "later_version_incomplete"),
    no("26_only_a_placeholder", fence(PLACEHOLDER), NO_CODE, "placeholder_skipped"),
    yes("26_pseudocode_after", f"{FINAL}{fence(PSEUDO, '')}", "later_version_incomplete"),
    yes("27_no_fences", GOOD),
    yes(
        "27_no_fences_between_prose",
        f"Sure! The model:\n\n{GOOD}\n{UNFENCED_REST}",
        "trimmed_trailing_lines: 1",
    ),
    no("28_diff", fence(DIFF, "diff"), NO_CODE, "diff_skipped"),
    no("28_diff_in_a_plain_fence", fence(DIFF, ""), NO_CODE),
    no("28_diff_without_fence", DIFF, NO_CODE),
    yes("29_json", json.dumps({"thought": "ok", "code": GOOD})),
    yes("29_json_in_a_fence", f"Here:\n{fence(json.dumps({'code': GOOD}, indent=1) + chr(10), 'json')}"),
    yes("29_fence_in_json", json.dumps({"answer": f"Here:\n{FINAL}", "reasoning": DRAFT})),
    yes(
        "29_chat_completion",
        json.dumps({"choices": [{"message": {"content": FINAL, "reasoning_content": DRAFT}}]}),
    ),
    yes("30_fstring_with_unbalanced_braces", fence(UNBALANCED), "does_not_parse", source=UNBALANCED),
    yes("30_doubled_braces_in_a_plain_string", fence(DOUBLED), source=DOUBLED),
    yes("31_newline_escape_in_printf", fence(NEWLINE), source=NEWLINE),
    yes("32_missing_imports_are_not_added", fence(NO_IMPORTS), source=NO_IMPORTS),
    yes("33_prototype_that_does_not_match", fence(PROTOTYPE), source=PROTOTYPE),
    yes("34_aliased", fence(ALIASED), source=ALIASED),
    yes("34_under_main_guard", fence(GUARDED), "model_new_not_top_level", source=GUARDED),
    yes("34_nested_in_a_function", fence(NESTED), "model_new_not_top_level", source=NESTED),
    yes("35_top_level_test_code", fence(TEST_CODE), source=TEST_CODE),
    yes("36_heading_trimmed", fence(f"{GOOD}\nExplanation\n{UNFENCED_REST}"), "trimmed_trailing_lines: 2"),
    yes("36_trailing_line_trimmed", fence(GOOD + UNFENCED_REST), "trimmed_trailing_lines: 1"),
    yes(
        "36_trim_is_bounded",
        fence(GOOD + UNFENCED_REST * 40),
        "does_not_parse",
        source=GOOD + UNFENCED_REST * 40,
    ),
    yes("37_one_megabyte", f"{'Some prose about it. ' * 50_000}\n{FINAL}"),
    yes("38_nul_bytes", FINAL.replace("class", "cl\0ass"), "normalised: nul"),
    yes(
        "39_explanation_before_and_after",
        f"Plan.\n<think>\n{DRAFT}</think>\nSo:\n{FINAL}Fast.",
        "thinking_removed",
    ),
    yes(
        "39_second_answer_after_thinking",
        f"{DRAFT}<think>\nWrong.\n</think>\n{FINAL}",
        "second_version_wins",
        "thinking_removed",
    ),
    yes(
        "39_answer_before_thinking_only",
        f"{FINAL}\n<think>\nAll good?\n{DRAFT}</think>\nThat is it.",
        "thinking_removed",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    extraction = extract(Response(text=case.text, finish_reason=case.finish, **case.other))
    assert extraction.status == case.status
    assert (extraction.candidate.source.rstrip() if extraction.candidate else None) == (
        case.source.rstrip() if case.source is not None else None
    )
    kinds = (
        warning if warning in case.warnings else warning.partition(":")[0] for warning in extraction.warnings
    )
    assert sorted(kinds) == sorted(case.warnings)


def test_all_39_cases_are_here() -> None:
    assert {case.name[:2] for case in CASES} == {f"{number:02}" for number in range(1, 40)}
