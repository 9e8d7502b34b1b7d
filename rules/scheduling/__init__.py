"""Causes that lie in admission, batching and compute."""
