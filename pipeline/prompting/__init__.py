"""Prompts: templates rendered for a problem and for what its last answer came to. Runs nothing."""

from pipeline.prompting.compose import first_prompt, repair_prompt
from pipeline.prompting.failure import Failure
from pipeline.prompting.templates import DEFAULT_TEMPLATE, Template, list_templates, open_template
from pipeline.prompting.thinking import without_thinking
from pipeline.prompting.trimming import trim_log, trim_text

__all__ = [
    "DEFAULT_TEMPLATE",
    "Failure",
    "Template",
    "first_prompt",
    "list_templates",
    "open_template",
    "repair_prompt",
    "trim_log",
    "trim_text",
    "without_thinking",
]
