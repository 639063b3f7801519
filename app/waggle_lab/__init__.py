"""The laboratory: experiments with Waggle, and the recipe of the starter model. `waggle-lab NAME` runs one."""
