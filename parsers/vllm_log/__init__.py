"""Server logs of vLLM 0.2 to 0.33, both engines: named patterns by topic, read line by line."""
