"""Languages: translation, placeholders, and figures as a person reads them."""
