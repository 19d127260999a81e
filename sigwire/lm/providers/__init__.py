"""Providers: the table of hosts and models, as data, and the endpoint of each request.

row          Provider, ApiKey, Wire, ModelRule: the shape of a row      registry  find_provider, register
rows         ROWS: the table                                            address   URL, headers and key of a request
openai_rows  OpenAI and Azure OpenAI                                    compatible_rows  hosts of chat completions
cloud_rows   Vertex AI and Amazon Bedrock                               authorized  a transport with a cloud's credentials
google       access tokens of Google Cloud                              aws       signatures of AWS
families     the rules of model families, for every host that serves them
connection   ConnectionOptions: the user's settings for reaching a provider
"""
