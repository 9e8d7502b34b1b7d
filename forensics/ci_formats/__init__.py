"""Findings of either kind in, the text that a CI system reads out: SARIF, JUnit, GitHub."""
