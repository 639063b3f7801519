"""What holds other widgets: headers, columns, grids of cards, and scroll areas."""
