"""Questions and how they are judged: the charter, the datasets, and the sandboxed processes that read strangers' text."""
