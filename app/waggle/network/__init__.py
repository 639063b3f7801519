"""The network of a node: records, the directory, transports, limits and reputation."""
