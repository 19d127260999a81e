"""LiteLLM: the ``backend`` for providers without a row, with its ``codec``, its ``effects`` and its ``tables``."""
