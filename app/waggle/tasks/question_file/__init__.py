"""People's own questions: read from a file, packed to travel by their hash, and unpacked with every check again."""
