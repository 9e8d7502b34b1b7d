"""Causes that lie in the engine process itself."""
