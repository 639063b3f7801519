"""What the operating system lets a process do, and how it says that it does not."""
