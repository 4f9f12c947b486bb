"""Our side of a sandboxed process. Begin with `client`, which starts a contestant and asks it things; `pool`
keeps processes warm, and `shared_memory` lays out inputs and outputs where both sides see them.
"""
