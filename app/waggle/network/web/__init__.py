"""The status page of a node, and the HTTP server it shares with the gateway."""
