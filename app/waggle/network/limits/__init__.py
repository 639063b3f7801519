"""What one peer may cost this node, and what the node thinks of it: rate limits, bandwidth, address ranges, reputation."""
