"""Try it: the model of now beside that of before."""
