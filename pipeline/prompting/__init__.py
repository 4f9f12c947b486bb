"""Prompts: templates rendered for a problem and for the result of its last answer. Runs nothing.

A prompt is composed in `compose`: `first_prompt` and `repair_prompt`, `plans_prompt` for plans, `plan_prompt`
for the program of one. It renders a template (`templates`, from `prompts/` at the top) with the `evidence` of
a failure, cut to size.
"""

from kernelproof.prompting.compose import first_prompt, plan_prompt, plans_prompt, repair_prompt, repair_text
from kernelproof.prompting.evidence import Failure, KnownPlan, Shown, Tried, trim_log, trim_text
from kernelproof.prompting.templates import (
    Template,
    checked_for_plans,
    default_template,
    list_templates,
    open_template,
)

__all__ = [
    "Failure",
    "KnownPlan",
    "Shown",
    "Template",
    "Tried",
    "checked_for_plans",
    "default_template",
    "first_prompt",
    "list_templates",
    "open_template",
    "plan_prompt",
    "plans_prompt",
    "repair_prompt",
    "repair_text",
    "trim_log",
    "trim_text",
]
