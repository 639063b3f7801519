"""The page You: this node's identity and what it has contributed."""
