"""Charts and graphs that are painted here, without pyqtgraph."""
