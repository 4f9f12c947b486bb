"""Marks of many models and formats around an answer: none of them gets into the program, or hides it."""

from __future__ import annotations

import html
import json

import pytest

from kernelproof.extraction import extract
from kernelproof.types import Extraction, Response, Status
from tests.extraction.programs import CLASS, CUDA, EXTENSION, GOOD, IMPORTS, SECOND, fence

THINKING = {
    "deepseek": ("<think>", "</think>"),
    "gemma 4": ("<|channel>thought", "<channel|>"),
    "seed-oss": ("<seed:think>", "</seed:think>"),
    "longcat": ("<longcat_think>", "</longcat_think>"),
    "magistral": ("[THINK]", "[/THINK]"),
    "kimi-vl": ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    "command a": ("<|START_THINKING|>", "<|END_THINKING|>"),
    "openthinker": ("<|begin_of_thought|>", "<|end_of_thought|>"),
    "openthinker, stripped": ("[begin_of_thought]", "[end_of_thought]"),
    "minimax": ("<mm:think>", "</mm:think>"),
    "think_start": ("<|think_start|>", "<|think_end|>"),
    "grpo": ("<start_working_out>", "<end_working_out>"),
    "medgemma": ("<unused94>thought", "<unused95>"),
    "apertus": ("<|inner_prefix|>", "<|inner_suffix|>"),
    "granite": ("Here is my thought process:", "\nHere is my response:"),
}
MARKS = pytest.mark.parametrize(("opener", "closer"), THINKING.values(), ids=THINKING)
DRAFT = f"\nFirst try:\n{fence(SECOND)}It reads beyond the end.\n"


def source(extraction: Extraction) -> str | None:
    return extraction.candidate.source.strip() if extraction.candidate else None


@MARKS
@pytest.mark.parametrize(
    "answer", [GOOD, fence(GOOD), f"\n{fence(GOOD)}"], ids=["same line", "fence", "below"]
)
def test_what_follows_the_thinking_is_taken(opener: str, closer: str, answer: str) -> None:
    for start in (opener, ""):  # a server may keep the opener for itself
        extraction = extract(Response(text=f"{start}{DRAFT}{closer}{answer}"))
        assert source(extraction) == GOOD.strip()
        assert "thinking_removed" in extraction.warnings


@MARKS
def test_a_draft_in_thinking_is_no_answer(opener: str, closer: str) -> None:
    unclosed = extract(Response(text=f"{opener}{DRAFT}Let me", finish_reason="stop"))
    cut = extract(Response(text=f"{opener}\n{fence(SECOND)}", finish_reason="length"))
    nothing_after = extract(Response(text=f"{opener}\n{fence(SECOND)}{closer}", finish_reason="stop"))
    assert unclosed.status is cut.status is Status.TRUNCATED
    assert nothing_after.status is Status.NO_CODE
    assert "code_only_in_reasoning" in nothing_after.warnings


@MARKS
def test_a_program_that_ends_unclosed_thinking_is_taken_with_a_warning(opener: str, closer: str) -> None:
    for finish in ("stop", None):
        extraction = extract(Response(text=f"{opener}{DRAFT}{fence(GOOD)}", finish_reason=finish))
        assert source(extraction) == GOOD.strip()
        assert {"unclosed_thinking", "taken_from_thinking"} <= set(extraction.warnings)


@MARKS
def test_a_program_keeps_a_mark_in_its_strings(opener: str, closer: str) -> None:
    program = f'{GOOD}TAGS = """\n{opener}\n{closer}\n"""\n'
    assert source(extract(Response(text=f"Here:\n{fence(program)}"))) == program.strip()
    assert source(extract(Response(text=program))) == program.strip()
    assert source(extract(Response(text=f"It prints `{opener}`.\n{fence(GOOD)}"))) == GOOD.strip()


AROUND = {
    "answer": ("<answer>", "</answer>"),
    "answer, on its own lines": ("<answer>\n", "\n</answer>\n"),
    "box": ("<|begin_of_box|>", "<|end_of_box|>"),
    "llama's tag": ("<|python_tag|>", "<|eom_id|>"),
    "html": ('<pre><code class="language-python">', "</code></pre>"),
    "cdata": ("<kernel><![CDATA[", "]]></kernel>"),
    "cdata, on its own lines": ("<kernel>\n<![CDATA[\n", "\n]]>\n</kernel>"),
    "codellama": ("[PYTHON]\n", "\n[/PYTHON]"),
    "codellama, same line": ("[PYTHON]", "[/PYTHON]"),
    "solution": ("<|begin_of_solution|>", "<|end_of_solution|>"),
    "response": ("<|START_RESPONSE|>", "<|END_RESPONSE|><|END_OF_TURN_TOKEN|>"),
    "artifact": ('<antArtifact identifier="k" type="application/vnd.ant.code">', "</antArtifact>"),
    "llama 4": ("<|python_start|>", "<|python_end|><|eom|>"),
    "qwen 3 coder": ("<tool_call>\n<function=write>\n<parameter=code>", "</parameter>\n</function>"),
    "internlm": ("<|action_start|><|interpreter|>\n", "<|action_end|>\n<|im_end|>"),
    "no closer": ("<answer>", ""),
}


@pytest.mark.parametrize("before", ["", "Sure.\n", f"<think>{DRAFT}</think>", f"Wrong:\n{fence(SECOND)}"])
@pytest.mark.parametrize(("opener", "closer"), AROUND.values(), ids=AROUND)
def test_a_mark_on_a_line_of_code_costs_no_line(opener: str, closer: str, before: str) -> None:
    for program in (GOOD.strip(), fence(GOOD).strip()):
        extraction = extract(Response(text=f"{before}{opener}{program}{closer}", finish_reason="stop"))
        assert source(extraction) == GOOD.strip()


@pytest.mark.parametrize("closer", ["</answer>", "<eos>", "<|file_separator|>\nimport torch\n", "<|return|>"])
def test_a_mark_after_the_last_line_of_code_costs_no_line(closer: str) -> None:
    for before in ("", "Sure.\n", f"<think>{DRAFT}</think>"):
        extraction = extract(Response(text=f"{before}{GOOD.rstrip()}{closer}", finish_reason="stop"))
        assert source(extraction) == GOOD.strip()


FIRST, REST = GOOD.partition("    int i")[0], "    int i" + GOOD.partition("    int i")[2]


@pytest.mark.parametrize("info", ["python", "cpp", ""])
def test_a_fence_that_goes_on_in_another_is_joined(info: str) -> None:
    extraction = extract(Response(text=f"{fence(FIRST)}And it goes on:\n\n{fence(REST, info)}Done.\n"))
    assert source(extraction) == GOOD.strip()
    assert "fences_joined" in extraction.warnings


def test_fences_that_do_not_fit_together_are_not_joined() -> None:
    extraction = extract(Response(text=f"{fence(FIRST)}And it goes on:\n\n{REST}```\n"))
    assert extraction.status is Status.NO_CODE
    assert "split_over_blocks: the rest of a string" in extraction.warnings


def cell(code: str, kind: str = "code") -> dict[str, object]:
    return {"cell_type": kind, "metadata": {}, "source": code.splitlines(keepends=True)}


NOTEBOOK = {
    "nbformat": 4,
    "cells": [
        cell("# ModelNew\n", "markdown"),
        cell("%matplotlib inline\n!pip install ninja\n" + IMPORTS),
        cell(EXTENSION),
        cell(CLASS),
        cell("print(ModelNew()(torch.rand(8)))\n"),
    ],
}
DATA = {
    "one cell": json.dumps({"cells": [cell(GOOD)]}, indent=1),
    "a notebook": json.dumps(NOTEBOOK),
    "the repr of a notebook": repr(NOTEBOOK),
    "the repr of a dict": repr({"reasoning": SECOND, "code": GOOD}),
    "the repr of a message": f"Message(content={GOOD!r}, reasoning_content={SECOND!r})",
    "the repr of a string": repr(GOOD),
    "the repr of parts": repr(
        [{"type": "thinking", "thinking": SECOND}, {"type": "text", "text": fence(GOOD)}]
    ),
    "a dict with a long string": "{'name': 'scale', 'code': '''" + GOOD + "'''}",
    "lines": json.dumps({"code": GOOD.splitlines(keepends=True)}),
}


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_data_is_not_the_program_that_it_holds(data: str) -> None:
    for text in (data, f"Here:\n{fence(data + chr(10), 'json')}", f"Here:\n{fence(data + chr(10))}"):
        extraction = extract(Response(text=text))
        lines = (source(extraction) or "").splitlines()
        assert [line for line in lines if line] == [line for line in GOOD.splitlines() if line]
        assert extraction.method == "json"


def test_data_without_a_program_holds_none() -> None:
    assert extract(Response(text=repr({"code": "import torch\n"}))).status is Status.NO_CODE


HEREDOC = f"cat > model_new.py << 'EOF'\n{GOOD}EOF\n"


@pytest.mark.parametrize(
    "text",
    [
        HEREDOC,
        f"$ cd /tmp\n{HEREDOC}python model_new.py\n",
        f"Run this:\n{fence(HEREDOC + 'python model_new.py' + chr(10), 'bash')}",
        f"Run this:\n{fence('mkdir -p out && ' + HEREDOC, '')}",
        fence(f"cat <<EOF > scale.cu\n{CUDA}EOF\n{HEREDOC}", "sh"),
        f"%%writefile model_new.py\n{GOOD}",
        fence(f"%%writefile model_new.py\n{GOOD}"),
        fence(f"out/model_new.py\n{GOOD}"),
        f"{fence(GOOD).rstrip()}assistant\n\nHere it is:\n\n{fence(SECOND)}",
        f"The conversation so far:\nUser: rewrite Model.\nAssistant: I do.\n{fence(GOOD)}",
        f"Let me see.<|im_end|>\n<|im_start|>assistant\n{fence(GOOD)}<|im_end|>",
    ],
)
def test_what_writes_the_program_to_a_file_and_turns_beside_it_are_none_of_it(text: str) -> None:
    assert source(extract(Response(text=text))) == GOOD.strip()


TURNS = {
    "chatml": "<|im_end|>\n<|im_start|>user\nFaster!<|im_end|>\n<|im_start|>assistant\n",
    "qwen": "<|endoftext|>Human: Faster!\n\nAssistant:\n",
    "llama 3": "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nFaster!<|eot_id|>\n",
    "llama 2": " [INST] Faster! [/INST]\n",
    "gemma": "<end_of_turn>\n<start_of_turn>user\nFaster!<end_of_turn>\n<start_of_turn>model\n",
    "gemma 4": "<turn|>\n<|turn>user\nFaster!<turn|>\n<|turn>model\n",
    "deepseek": "<\uff5cend\u2581of\u2581sentence\uff5c><\uff5cUser\uff5c>Faster!<\uff5cAssistant\uff5c>\n",
    "phi": "<|end|><|user|>\nFaster!<|end|><|assistant|>\n",
    "command r": "<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>Faster!<|CHATBOT_TOKEN|>\n",
    "granite": "<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>Faster!<|start_of_role|>assistant\n",
    "kimi": "<|im_end|><|im_user|>user<|im_middle|>Faster!<|im_assistant|>assistant<|im_middle|>\n",
    "words": "\n\nUser: Faster!\nAssistant:\n",
    "an instruction": "\n\n### Instruction:\nMake it faster.\n\n### Response:\n",
    "glm": "\n<|user|>\nFaster!\n<|assistant|>\n",
}


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_the_answer_ends_with_the_turn(turn: str) -> None:
    for program in (GOOD, fence(GOOD)):
        extraction = extract(Response(text=program.rstrip() + turn + fence(SECOND), finish_reason="stop"))
        assert source(extraction) == GOOD.strip()
        assert "next_turn_removed" in extraction.warnings


def test_solar_ends_its_thinking_as_it_ends_a_message() -> None:
    thinking = f"<|think|>{DRAFT}<|end|><|begin|>assistant<|content|>"
    assert source(extract(Response(text=f"{thinking}{GOOD.rstrip()}<|end|>"))) == GOOD.strip()
    assert extract(Response(text=f"<|think|>\n{fence(SECOND)}<|end|>")).status is Status.TRUNCATED
    assert source(extract(Response(text=f"{fence(GOOD).rstrip()}<|end|>"))) == GOOD.strip()


def test_entities_of_html_are_read() -> None:
    escaped = html.escape(GOOD, quote=False)
    for text in (f"<code>{escaped}</code>", fence(escaped)):
        assert source(extract(Response(text=text))) == GOOD.strip()
    quoted = GOOD + '# "&lt;" is kept\n'
    assert source(extract(Response(text=fence(quoted)))) == quoted.strip()


def test_a_call_of_a_tool_in_the_text_holds_the_program() -> None:
    call = json.dumps({"name": "write", "arguments": {"code": GOOD}})
    for opener, closer in (("<tool_call>", "</tool_call>"), ("<|python_tag|>", "<|eom_id|>")):
        assert source(extract(Response(text=f"{opener}{call}{closer}"))) == GOOD.strip()


@pytest.mark.parametrize(
    ("finish", "status"),
    [
        ("model_context_window_exceeded", Status.TRUNCATED),
        ("repetition_truncation", Status.TRUNCATED),
        ("sensitive", Status.FILTERED),
        ("abort", Status.PROVIDER_ERROR),
        ("insufficient_system_resource", Status.PROVIDER_ERROR),
        ("network_error", Status.PROVIDER_ERROR),
    ],
)
def test_a_finish_reason_that_says_the_answer_is_not_whole(finish: str, status: Status) -> None:
    extraction = extract(Response(text=GOOD, finish_reason=finish))
    assert (extraction.candidate, extraction.status) == (None, status)
    assert extraction.reason == f"the server's finish reason is {finish}"


def test_a_program_after_thinking_keeps_the_line_that_does_not_parse() -> None:
    program = GOOD.replace("import torch.nn as nn", "import torch.nn as", 1)
    extraction = extract(Response(text=f"{DRAFT}</think>{program}", finish_reason="stop"))
    assert source(extraction) == program.strip()
    assert "does_not_parse" in extraction.warnings
