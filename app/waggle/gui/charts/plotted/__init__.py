"""Charts with axes that pyqtgraph draws. Most modules import it, so they are loaded when a chart is first shown."""
