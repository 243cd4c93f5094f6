"""Mathematical operations as pure functions of flat arrays."""
