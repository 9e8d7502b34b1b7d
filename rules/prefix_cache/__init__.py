"""Causes that change the prefix-cache hit rate."""
