"""Parts of the agents of the door."""
