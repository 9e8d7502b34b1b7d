"""The arithmetic of the KV pool: geometry, size, residence, bounds, simulation; plain numbers."""
