"""Prompts: templates rendered for a problem and for what its last answer came to. Runs nothing."""

from kernelproof.prompting.compose import first_prompt, repair_prompt
from kernelproof.prompting.evidence import Shown, Tried
from kernelproof.prompting.failure import Failure
from kernelproof.prompting.templates import Template, default_template, list_templates, open_template
from kernelproof.prompting.thinking import without_thinking
from kernelproof.prompting.trimming import trim_log, trim_text

__all__ = [
    "Failure",
    "Shown",
    "Template",
    "Tried",
    "default_template",
    "first_prompt",
    "list_templates",
    "open_template",
    "repair_prompt",
    "trim_log",
    "trim_text",
    "without_thinking",
]
