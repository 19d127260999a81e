"""The rows of models behind a cloud's own door: Vertex AI and Amazon Bedrock.

A request without a key gets the credentials of the cloud's own tools (``authorize``): the AWS signature, Google's access
token. Their packages are optional and imported by the first such request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sigwire.core.capabilities import Capabilities
from sigwire.errors import LMAuthenticationError
from sigwire.lm.codecs.shared.interface import ModelFacts
from sigwire.lm.providers.families import CLAUDE_RULES, GEMINI_RULES, GPT_OSS, NOVA, NOVA_2
from sigwire.lm.providers.row import AddressForm, ApiKey, ModelRule, Provider, UrlVariable, Wire
from sigwire.lm.providers.rows import GEMINI_CAPABILITIES

__all__ = ["CLOUD_ROWS"]


# --- Vertex AI


def _vertex_base(filled: Mapping[str, str]) -> str:
    place = filled["location"]
    host = {
        "global": "aiplatform.googleapis.com",
        "us": "aiplatform.us.rep.googleapis.com",  # Claude in any region of a continent
        "eu": "aiplatform.eu.rep.googleapis.com",
    }.get(place, f"{place}-aiplatform.googleapis.com")
    return f"https://{host}/v1/projects/{filled['project']}/locations/{place}"


_CLAUDE_ON_VERTEX: Mapping[str, int | None] = {"json_object": False, "audio": False, "tools_with_json_schema": True}

_VERTEX = Provider(
    prefix="vertex",
    base_url=_vertex_base,
    variables={
        "project": UrlVariable(("GOOGLE_CLOUD_PROJECT", "VERTEXAI_PROJECT")),
        "location": UrlVariable(("GOOGLE_CLOUD_LOCATION", "VERTEXAI_LOCATION"), "global"),
    },
    keys=(ApiKey("GOOGLE_OAUTH_ACCESS_TOKEN"), ApiKey("CLOUDSDK_AUTH_ACCESS_TOKEN")),
    key="optional",
    authorize="sigwire.lm.providers.google:access_token",
    hosts=(
        "aiplatform.googleapis.com",
        "*-aiplatform.googleapis.com",
        "*aiplatform.us.rep.googleapis.com",
        "*aiplatform.eu.rep.googleapis.com",
    ),
    wires={
        "generate": Wire("gemini", "gemini:VERTEX"),
        "messages": Wire("anthropic", "anthropic.profiles:VERTEX_MESSAGES"),
        "chat": Wire("openai_chat", "openai_chat.profiles:COMPATIBLE", path="/endpoints/openapi/chat/completions"),
        "mistral": Wire(
            "openai_chat", "openai_chat.profiles:MISTRAL", path="/publishers/mistralai/models/{model}:{method}"
        ),
    },
    addresses=(
        AddressForm("/endpoints/openapi(?:/chat/completions)?", "chat"),
        AddressForm(r"/publishers/[^/]+/models/(?P<model>[^/:]+):\w+", query=False),
        AddressForm(r"/(?P<model>endpoints/[^/:]+):\w+", query=False),
    ),
    resources=(
        r"projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+)/(?P<model>endpoints/[^/]+)",
        r"projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+)/publishers/[^/]+/models/(?P<model>[^/]+)",
    ),
    capabilities=GEMINI_CAPABILITIES,
    rules=(
        # Partners' models as a service have the name of their publisher.
        ModelRule.of(
            "ai21/* deepseek-ai/* meta/* minimaxai/* moonshotai/* openai/* qwen/* xai/* zai-org/*",
            wire="chat",
            tools_with_json_schema=True,
            schema_on_demand=True,
            audio=False,
            files=False,
        ),
        # https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/mistral: Mistral's wire, by bare names.
        ModelRule.of(
            "mistral-* ministral-* codestral-*",
            wire="mistral",
            tools_with_json_schema=True,
            schema_on_demand=True,
            audio=False,
            files=False,
        ),
        *(
            replace(rule, wire="messages", capabilities={**_CLAUDE_ON_VERTEX, **rule.capabilities})
            for rule in CLAUDE_RULES
        ),
        *GEMINI_RULES,
    ),
    hints={
        LMAuthenticationError: "Access tokens last an hour: pass api_key as a function that gives a fresh one "
        "(`gcloud auth print-access-token` prints one), or install google-auth, which reads the credentials of gcloud."
    },
    aliases=("vertex_ai",),
)


# --- Amazon Bedrock

_NO_FORCED_CHOICE = ModelFacts(thinking="none", forced_choice=False)

# https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html: Claude since 4.5
_SCHEMAS: Mapping[str, int | None] = {"json_schema": True, "tools_with_json_schema": True}
_OPUS_4_1 = next(rule for rule in CLAUDE_RULES if rule.fits("claude-opus-4-1"))

_BEDROCK = Provider(
    prefix="bedrock",
    base_url="https://bedrock-runtime.{region}.amazonaws.com",
    base_variables=("AWS_ENDPOINT_URL_BEDROCK_RUNTIME",),
    variables={
        "region": UrlVariable(("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_REGION_NAME")),
        "profile": UrlVariable(("AWS_PROFILE",)),
    },
    keys=(ApiKey("AWS_BEARER_TOKEN_BEDROCK"),),
    key="optional",
    authorize="sigwire.lm.providers.aws:sign",
    resources=(r"arn:aws[\w-]*:bedrock:(?P<region>[\w-]+):.+",),
    wires={
        "converse": Wire("bedrock_converse", "bedrock_converse:CONVERSE"),
        "claude": Wire("bedrock_converse", "bedrock_converse:CLAUDE"),
        "nova": Wire("bedrock_converse", "bedrock_converse:NOVA"),
        "without-top-k": Wire("bedrock_converse", "bedrock_converse:WITHOUT_TOP_K"),
    },
    capabilities=Capabilities(
        native_tools=True,
        parallel_tool_calls=True,
        tool_choice=True,
        images=True,
        files=True,
    ),
    rules=(
        replace(_OPUS_4_1, names=("*claude-opus-4-1*",), wire="claude"),
        *(replace(rule, wire="claude", capabilities={**_SCHEMAS, **rule.capabilities}) for rule in CLAUDE_RULES),
        ModelRule.of(
            "*gpt-oss*",
            replace(GPT_OSS, forced_choice=False),
            wire="without-top-k",
            reasoning=True,
            images=False,
            files=False,
        ),
        ModelRule.of(
            "*deepseek.r1*",
            _NO_FORCED_CHOICE,
            wire="without-top-k",
            reasoning=True,
            native_tools=False,
            images=False,
        ),
        ModelRule.of("*nova-micro*", NOVA, wire="nova", images=False, files=False),
        ModelRule.of("*nova-2*", NOVA_2, wire="nova", reasoning=True, reasoning_hidden=True),
        ModelRule.of("*nova-lite* *nova-pro* *nova-premier*", NOVA, wire="nova"),
        ModelRule.of("*nova-*", replace(NOVA, max_output=None), wire="nova"),
        ModelRule.of(
            "*amazon.titan* *llama2* *llama3-8b* *llama3-70b*",
            _NO_FORCED_CHOICE,
            wire="without-top-k",
            native_tools=False,
            images=False,
        ),
        ModelRule.of("*meta.llama*", _NO_FORCED_CHOICE, wire="without-top-k"),
        ModelRule.of("*", _NO_FORCED_CHOICE),
    ),
    hints={
        LMAuthenticationError: "The request was signed with the AWS credentials of this machine, or sent with a Bedrock "
        "API key: check them, their region, and the access to the model in the Bedrock console."
    },
    aliases=("bedrock_converse",),
)

CLOUD_ROWS: tuple[Provider, ...] = (_VERTEX, _BEDROCK)
"""The rows of this file."""
