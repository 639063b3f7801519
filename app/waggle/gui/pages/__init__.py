"""The pages of the window, one folder each; none imports another."""
