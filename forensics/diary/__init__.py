"""Facts → who was running, with which settings, on what, from when to when."""

from forensics.diary.records import EngineDiary, Epoch, Gpu, KvPool, Stated, Version

__all__ = ["EngineDiary", "Epoch", "Gpu", "KvPool", "Stated", "Version"]
