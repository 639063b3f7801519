"""What any one peer may cost or count: rate limits, bandwidth, address ranges, reputation."""
