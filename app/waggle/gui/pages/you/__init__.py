"""You: who this node is, and what it contributed."""
