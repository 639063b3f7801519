"""Help: what the words mean, whether all works here, and a report without names."""
