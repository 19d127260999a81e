"""Models of a user's own in DSPy's form: the methods that a subclass overrides, and their answers.

overridden_call  the call of an overridden method      answers       answers in DSPy's forms to responses
cached_values    values in the cache as answers        token_limits  the limit of OpenAI's reasoning models
litellm_options  LiteLLM's options by the names of ``sigwire.LM``
"""
