"""How a node reaches its peers: one folder for each transport, and the interface that all of them have."""
