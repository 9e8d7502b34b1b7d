"""`forensics lint`: documents of operators in, findings out; no frames, no charts."""
