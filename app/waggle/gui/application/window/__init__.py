"""The parts of the main window: its pages, its navigation, where it stands, and what it tells."""
