"""The page Peers: who is connected, and what this node thinks of each."""
