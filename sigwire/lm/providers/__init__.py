"""Providers: the table of hosts and models, as data, and the endpoint of each request.

row         Provider, ApiKey, Wire, ModelRule: the shape of a row      registry  find_provider, register
rows        ROWS: the table, with openai_rows and compatible_rows      address   URL, headers and key of a request
connection  ConnectionOptions: the user's settings for reaching a provider
"""
