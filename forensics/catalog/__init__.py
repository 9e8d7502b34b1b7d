"""Data, not code: metrics, flags, GPUs, models, log lines and messages, by vLLM version."""
