"""The fake provider's wires on two clouds: Converse of Bedrock, and Claude on Vertex AI."""
