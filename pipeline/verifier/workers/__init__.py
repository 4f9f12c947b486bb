"""Our side of a sandboxed process: the client, the warm pool, the shared memory, and the cleanup after it."""
