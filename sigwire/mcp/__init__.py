"""MCP servers: ``mcp_tools`` opens a server and returns its tools. Needs the extra ``mcp``.

servers     mcp_tools: the server that a caller names, the tools chosen of it      connection  a connection held by a task
errors      McpServerError
"""
