"""litellm."""
