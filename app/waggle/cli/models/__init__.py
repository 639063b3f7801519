"""Commands about models: list, search, choose, remove, export."""
