"""The application around the pages: start-up, main window, navigation and tray."""
