"""Mathematics, as pure functions on flat arrays."""
