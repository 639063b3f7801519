"""Charts and graphs, drawn by hand or by pyqtgraph."""
