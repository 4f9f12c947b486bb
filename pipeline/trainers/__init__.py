"""Reward functions for trainers, each a short module: they send answers to the evaluation service.

Begin with `rewards`, which they share. docs/guide/train.md shows each with its trainer; a module imports its
trainer only where the protocol is a class.
"""
