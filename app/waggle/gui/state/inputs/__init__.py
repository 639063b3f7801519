"""What people paste, drop or open: links, pictures, models and files of questions."""
