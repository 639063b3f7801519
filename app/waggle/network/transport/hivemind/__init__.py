"""Taking part as a peer of the hivemind DHT; the only room that imports hivemind."""
