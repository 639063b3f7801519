"""The swarms that a person knows: their list, invites, the connection to the chosen one, and what is mended in them."""
