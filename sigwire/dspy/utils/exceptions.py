"""The names of ``dspy.utils.exceptions``. Names that the core has in other words are other names of its classes."""

from __future__ import annotations

from sigwire.errors import (
    AdapterParseError,
    ConfigurationError,
    ContextWindowExceededError,
    LMAuthenticationError,
    LMBillingError,
    LMError,
    LMInvalidRequestError,
    LMNotConfigured,
    LMRateLimitError,
    LMServerError,
    LMTimeoutError,
    LMTransportError,
    LMUnexpectedError,
    LMUnsupportedModelError,
    SigwireError,
    UnsupportedFeature,
    is_retryable_lm_error,
)

__all__ = [
    "AdapterParseError", "ContextWindowExceededError", "DSPyError", "LMAuthError", "LMBillingError",
    "LMConfigurationError", "LMError", "LMInvalidRequestError", "LMNotConfiguredError", "LMProviderError",
    "LMRateLimitError", "LMServerError", "LMStreamAssemblyError", "LMTimeoutError", "LMTransportError",
    "LMUnexpectedError", "LMUnsupportedFeatureError", "LMUnsupportedModelError", "is_retryable_lm_error",
]  # fmt: skip

DSPyError = SigwireError
LMAuthError = LMAuthenticationError
LMConfigurationError = ConfigurationError
LMNotConfiguredError = LMNotConfigured
LMProviderError = LMError
LMStreamAssemblyError = LMUnexpectedError
LMUnsupportedFeatureError = UnsupportedFeature
