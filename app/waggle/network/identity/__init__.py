"""Who a node is: its key, its backup, its name for people, and its membership of a private swarm."""
