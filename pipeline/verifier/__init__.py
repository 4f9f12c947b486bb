"""The trusted core: from a candidate's source to a verdict, and nothing of the rooms around it.

`engine.engine.Engine.verify(source, problem, settings)` is the way in. docs/verifier.md says which ten files
to read, in which order, and what each promises. (`kernelproof.verify` is the function of the Python API.)
"""
