"""Layer 2, mathematics: pure functions on flat arrays."""
