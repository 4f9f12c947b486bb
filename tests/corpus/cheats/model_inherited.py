# problem: level1/2
# expected: load_error
"""Mechanism: imports the reference and inherits it. Surface: one namespace for both."""
from kernelproof.reference_models.level1 import *  # noqa: F403

Model = globals().get("Model") or __import__("problem_0").Model


class ModelNew(Model):
    pass
