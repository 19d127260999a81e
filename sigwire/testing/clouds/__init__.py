"""The fake provider's wires on two clouds: Converse of Bedrock, and Claude on Vertex AI.

converse       Converse of Bedrock                event_stream  its events, and the binary frames that carry them
vertex_claude  Messages with the model in the path  converse_rules  rules of Converse over a whole request
"""
