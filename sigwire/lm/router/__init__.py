"""The router: several models as one."""
