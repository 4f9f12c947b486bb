"""kernelproof: asks language models for kernels and proves which are right and how fast they are."""

from pipeline.version import __version__

__all__ = ["__version__"]
