"""The rows of OpenAI's models: OpenAI and Azure OpenAI. Other models at their addresses have the rules of their family."""

from __future__ import annotations

from dataclasses import replace

from sigwire.core.capabilities import Capabilities
from sigwire.lm.providers.families import FAMILIES, OPENAI_RULES
from sigwire.lm.providers.row import (
    AddressForm,
    ApiKey,
    Provider,
    UrlVariable,
    Wire,
)

__all__ = ["AZURE", "OPENAI"]

# Chat completions shows no thinking, and Responses a summary only to verified organizations.
_CAPABILITIES = replace(Provider(prefix="").capabilities, reasoning_hidden=True)

OPENAI = Provider(
    prefix="openai",
    base_url="https://api.openai.com/v1",
    base_variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    addresses=(AddressForm("/chat/completions"), AddressForm("/responses", "responses"), AddressForm("/decisions")),
    keys=(ApiKey("OPENAI_API_KEY"),),
    header_variables={"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"},
    wires={
        # ``LM("openai/some-model", base_url=...)`` reaches hosts without a row. A gateway serves OpenAI's models.
        "chat": Wire("openai_chat", "openai_chat.profiles:OPENAI", foreign_host="openai_chat.profiles:COMPATIBLE"),
        "responses": Wire("openai_responses", "openai_responses:OPENAI", foreign_host="openai_responses:COMPATIBLE"),
        "decisions": Wire("decisions", "decisions:OPENAI", capabilities=Capabilities(images=True, decides="only")),
    },
    builtin_wire="responses",
    capabilities=_CAPABILITIES,
    rules=OPENAI_RULES,
    families=FAMILIES,
)


# The portal shows "Target URIs": whole addresses of operations. The paths of ``v1`` have no dated version.
_PROJECT = "(?:/api/projects/[^/]+)?"
_AZURE_ADDRESSES = (
    AddressForm(f"{_PROJECT}/openai/deployments/(?P<model>[^/]+)(?:/chat/completions)?"),
    AddressForm(f"{_PROJECT}/openai(?:/v1)?/responses", "responses", query=False),
    AddressForm(f"{_PROJECT}/openai/v1/chat/completions", "v1"),
    AddressForm(f"{_PROJECT}/openai(?:/v1)?"),
    AddressForm("/models(?:/chat/completions)?", "models"),
    AddressForm("/api/projects/[^/]+"),
)

AZURE = Provider(
    prefix="azure",
    base_variables=("AZURE_OPENAI_ENDPOINT", "AZURE_API_BASE"),
    addresses=_AZURE_ADDRESSES,
    variables={"api_version": UrlVariable(("OPENAI_API_VERSION", "AZURE_API_VERSION"), "2024-10-21")},
    keys=(
        ApiKey("AZURE_OPENAI_API_KEY", "api-key", "{}"),
        ApiKey("AZURE_API_KEY", "api-key", "{}"),
        ApiKey("AZURE_OPENAI_AD_TOKEN", start="eyJ"),  # a token of Entra ID is a JWT; keys are letters and digits
    ),
    own_host=True,
    wires={
        "chat": Wire("openai_chat", "openai_chat.profiles:AZURE", query={"api-version": "{api_version}"}),
        "responses": Wire("openai_responses", "openai_responses:AZURE", path="/openai/v1/responses"),
        "v1": Wire("openai_chat", "openai_chat.profiles:AZURE", path="/openai/v1/chat/completions"),
        "models": Wire(  # Foundry: models of other vendors
            "openai_chat",
            "openai_chat.profiles:COMPATIBLE",
            path="/models/chat/completions",
            query={"api-version": "2024-05-01-preview"},
        ),
    },
    builtin_wire="responses",
    capabilities=_CAPABILITIES,
    rules=OPENAI_RULES,
    families=FAMILIES,
)
