"""Tests of kernelproof.verifier.build."""
