"""The ground floor, which imports nothing of Waggle: errors, paths, settings, the log, and what this computer keeps."""
