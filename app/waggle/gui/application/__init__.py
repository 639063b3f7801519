"""The application around the pages: its start, its window, its navigation, its tray."""
