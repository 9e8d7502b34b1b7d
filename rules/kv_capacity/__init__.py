"""Causes that lie in the size of the KV pool."""
