"""Reward functions for trainers, each a short module: they send answers to the evaluation service.

docs/guide/train.md shows each with its trainer. One imports its trainer only where the protocol is a class.
"""
