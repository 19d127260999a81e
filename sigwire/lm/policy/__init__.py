"""What is decided about a call to a provider, apart from its JSON and from how bytes move.

retry    whether, when and how often a failed trip is made again
"""
