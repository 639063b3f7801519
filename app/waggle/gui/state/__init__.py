"""What the window knows, without a widget."""
