"""PromQL with places: syntax and types from `promql-parser`, positions from our own scan."""
