"""The recipe of the starter model, and models of published shapes."""
