"""The recipe of the starter model, the models of studies, and random models of published shapes."""
