"""Tests of kernelproof.compile."""
