"""The clocks of stamps; see `forensics.evidence` for what each means."""

CLOCKS = ("utc", "local", "yearless", "none")
