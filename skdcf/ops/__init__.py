"""Mathematical operations, implemented as pure functions of flat arrays."""
