"""A plan: how a program could be made fast, in prose."""

from __future__ import annotations

from kernelproof.types.base import FrozenRecord


class Plan(FrozenRecord):
    """One of the plans in a model's answer. Its words are the model's."""

    title: str
    """One line."""
    text: str
    """What it says beside its title; may be empty."""
