"""Controlled experiments: how the starter is made, and whether sharing helps. `waggle-lab NAME` opens one."""
