"""What nodes send each other and keep in the directory, decoded strictly."""
