"""Taking part through gateways, for computers that cannot run hivemind."""
