"""The shape of a row of the provider table. ``rows`` holds the rows, ``registry`` finds one.

Rows name codecs and do not import them: a row costs nothing until one of its models is used. No key is read here.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from sigwire.core.capabilities import Capabilities
from sigwire.errors import LMError
from sigwire.lm.codecs.shared.interface import Codec, ModelFacts, WireProfile
from sigwire.lm.histories.call_ids import MISTRAL_IDS
from sigwire.lm.secrets import Secret

__all__ = [
    "NO_THINKING", "AddressForm", "ApiKey", "ModelRule", "Provider", "UrlVariable", "Wire", "facts_among", "without_slash",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key: the environment variable that holds it, the header that carries it, and the header's form.

    ``host``: the host of the key, if it is not the row's own host. ``start``: a key given in code that starts so has this form.

    >>> ApiKey("ACME_API_KEY").headers("k") == {"authorization": "Bearer k"}
    True
    """

    variable: str
    header: str = "authorization"
    form: str = "Bearer {}"
    host: str | None = None
    start: str = ""

    def headers(self, key: str) -> dict[str, str]:
        """Return the header that carries ``key``."""
        return {self.header: Secret(self.form.format(key))}


@dataclass(frozen=True, slots=True)
class Wire:
    """A codec and a profile of it, as objects or by name.

    ``codec`` is a module with a codec's functions; a name is one of ``sigwire.lm.codecs``. ``profile`` by name is
    ``module:NAME`` there. ``foreign_host`` is the profile for models that no rule of the row names, at hosts that are not
    the row's own. ``path`` replaces the profile's path; ``query`` is added to the URL and may hold ``{variables}``.
    ``capabilities``: those of every model on this wire, in place of the row's.

    >>> codec, profile = Wire("openai_chat", "openai_chat.profiles:GROQ").load()
    >>> profile.family, profile.path
    ('groq', '/chat/completions')
    """

    codec: str | Codec[Any] = "openai_chat"
    profile: str | WireProfile = "openai_chat.profiles:COMPATIBLE"
    foreign_host: str | WireProfile | None = None
    path: str | None = None
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    capabilities: Capabilities | None = None

    def load(self, *, foreign_host: bool = False) -> tuple[Codec[Any], WireProfile]:
        """Return codec and profile as objects."""
        codec = _codec_module(self.codec) if isinstance(self.codec, str) else self.codec
        profile = (self.foreign_host if foreign_host else None) or self.profile
        if isinstance(profile, str):
            module, _, name = profile.partition(":")
            profile = cast(WireProfile, getattr(_codec_module(module), name))
        return cast("Codec[Any]", codec), profile if self.path is None else replace(profile, path=self.path)

    def option_names(self) -> frozenset[str] | None:
        """Return the options that the codec places, drops or refuses by name; ``None`` if it has no table of them.

        >>> "num_ctx" in (Wire("ollama", "ollama:OLLAMA").option_names() or ())
        True
        """
        names = set[str]()
        for foreign in (False, True):
            codec, profile = self.load(foreign_host=foreign)
            if (table := getattr(codec, "OPTIONS", None)) is None:
                return None
            rows = {**table, **getattr(profile, "options", {})}
            names |= {name for name, option in rows.items() if option is not None}
        return frozenset(names)


def _codec_module(name: str) -> Any:
    return importlib.import_module(f"sigwire.lm.codecs.{name}")


@dataclass(frozen=True, slots=True)
class UrlVariable:
    """A part of a URL: an argument of ``LM``, else the first environment variable that is set, else the default."""

    variables: tuple[str, ...] = ()
    default: str | None = None


@dataclass(frozen=True, slots=True)
class AddressForm:
    """The end of an address as users paste it: the path of one operation, which a base URL does not have.

    ``end`` is a pattern; its group ``model`` is the model that requests go to. ``wire``: the row's wire of the operation,
    ``None`` if the model decides. ``query``: whether the address keeps its query.

    >>> AddressForm("/deployments/(?P<model>[^/]+)/chat/completions").match("https://a/deployments/d/chat/completions")
    ('https://a', 'd')
    """

    end: str
    wire: str | None = None
    query: bool = True

    def match(self, path: str) -> tuple[str, str | None] | None:
        """Return the base URL and the model of an address without query; ``None`` if it has another form."""
        found = re.search(f"(?:{self.end})/*$", path.strip())
        return found and (path.strip()[: found.start()], found.groupdict().get("model"))


@dataclass(frozen=True, slots=True)
class ModelRule:
    """The differences of some models of a row. The first rule of the row with a fitting name counts.

    ``names`` are patterns (``*``, ``?``, ``[...]``) for the whole name in lower case, with ``-`` for ``@`` (Vertex AI puts it
    before a date). ``capabilities`` are changes to the
    row's. ``wire`` names the row's wire for these models; ``tools_wire`` the one for requests with tools.
    """

    names: tuple[str, ...]
    facts: ModelFacts = ModelFacts()
    capabilities: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    wire: str | None = None
    tools_wire: str | None = None

    @classmethod
    def of(
        cls,
        names: str,
        facts: ModelFacts | None = None,
        *,
        wire: str | None = None,
        tools_wire: str | None = None,
        **capabilities: int | None,
    ) -> ModelRule:
        """Return a rule; ``names`` are space-separated."""
        return cls(tuple(names.split()), facts or ModelFacts(), capabilities, wire, tools_wire)

    def fits(self, model: str) -> bool:
        """Return True if the rule is for ``model``.

        >>> ModelRule.of("gpt-4 gpt-5*", images=False).fits("gpt-5-mini")
        True
        """
        own = model.lower().replace("@", "-")
        return any(fnmatchcase(own, name) for name in self.names)


_DEFAULT_RULE = ModelRule(names=("*",))
_MISTRAL = ModelRule.of(
    "*mistral* *mixtral* *ministral* *magistral* *codestral* *devstral* *mathstral* *pixtral* *voxtral*"
)
NO_THINKING = ModelFacts(thinking="none")


def facts_among(families: Iterable[ModelRule], model: str) -> ModelFacts:
    """Return the facts of a model of a gateway: by the end of its name, without vendor and variant (``openai/o3:free``)."""
    name = model.rpartition("/")[2].partition(":")[0]
    return next((rule.facts for rule in families if rule.fits(name)), _DEFAULT_RULE.facts)


def without_slash(url: str) -> str:
    """Return a base URL without blanks and slashes at its end, for joining with a path.

    >>> without_slash("https://llm.acme.example/v1/ ")
    'https://llm.acme.example/v1'
    """
    return url.strip().rstrip("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One row. A prefix, a ``base_url`` and a key describe a host whose wire is OpenAI's chat completions.

    URL: ``base_url`` may hold ``{variables}`` (or be a function of their values); if it is empty, the user gives one. The
    first of ``base_variables`` that is set in the environment overrides it. ``tidy`` makes a base URL of the user's text, after
    the first of ``addresses`` that fits has cut the path of an operation off. ``resources``: patterns of whole resource names
    in place of a model's name; their groups are the row's variables and ``model``.

    Keys: the first of ``keys`` whose variable is set. A key given in code is sent like the first one. ``key`` states
    whether one is needed. A key from the environment is sent to the row's own hosts and to the base URL of the
    environment; with ``own_host`` (the host belongs to the user) to any base URL. ``hosts`` are the row's own hosts if
    they differ from the base URL's (``*`` first: any prefix). ``header_variables``: further headers from the environment.
    ``authorize``: ``module:function``, which returns the headers of a request without a key (``authorized``).

    Models: ``wires`` by name, the first is the default; ``builtin_wire`` is for requests with tools that the provider runs
    (web search); ``capabilities`` of the models, ``rules`` for those that differ; ``hints``: the last sentence of an error;
    ``aliases``: other prefixes for the row. ``families``: the rules for models that no rule of a gateway's row names.
    ``shows_reasoning``: the host shows the thinking that no request asked for, of models that think by default.

    ``backend`` replaces all of these: ``module:function``, which makes a ``SimpleBackend`` (or ``Backend``) of a model's
    name and ``ConnectionOptions``; sigwire's rows have a name of ``sigwire.lm.backend.BACKENDS``. ``needs``: a package that
    it imports, also the name of sigwire's extra. ``models``: all models of the row with their capabilities, if known.
    """

    prefix: str
    base_url: str | Callable[[Mapping[str, str]], str] = ""
    base_variables: tuple[str, ...] = ()
    tidy: Callable[[str], str] = without_slash
    addresses: tuple[AddressForm, ...] = (AddressForm("/chat/completions"),)
    resources: tuple[str, ...] = ()
    variables: Mapping[str, UrlVariable] = field(default_factory=dict[str, UrlVariable])
    keys: tuple[ApiKey, ...] = ()
    key: Literal["needed", "optional"] = "needed"
    own_host: bool = False
    hosts: tuple[str, ...] = ()
    header_variables: Mapping[str, str] = field(default_factory=dict[str, str])
    authorize: str = ""
    wires: Mapping[str, Wire] = field(default_factory=lambda: {"chat": Wire()})
    builtin_wire: str | None = None
    capabilities: Capabilities = Capabilities(
        native_tools=True,
        parallel_tool_calls=True,
        tool_choice=True,
        json_schema=True,
        json_object=True,
        tools_with_json_schema=True,
        schema_on_demand=True,
        images=True,
    )
    rules: tuple[ModelRule, ...] = ()
    families: tuple[ModelRule, ...] = ()
    shows_reasoning: bool = False
    hints: Mapping[type[LMError], str] = field(default_factory=dict[type[LMError], str])
    aliases: tuple[str, ...] = ()
    backend: str = ""
    needs: str = ""
    models: Mapping[str, Capabilities] = field(default_factory=dict[str, Capabilities])

    @property
    def own_hosts(self) -> tuple[str, ...]:
        """The row's own hosts. Hosts below them count as well.

        >>> from sigwire.lm.providers.registry import PROVIDERS
        >>> PROVIDERS["openai"].own_hosts
        ('api.openai.com',)
        """
        if self.hosts or callable(self.base_url):
            return self.hosts
        return (urlsplit(self.base_url).hostname or "",) if self.base_url else ()

    def read_resource(self, name: str) -> Mapping[str, str]:
        """Return the variables in the resource name of a model, and its ``model``; empty for a plain name.

        >>> from sigwire.lm.providers.registry import PROVIDERS
        >>> PROVIDERS["bedrock"].read_resource("arn:aws:bedrock:eu-west-1:1:application-inference-profile/x")
        {'region': 'eu-west-1'}
        """
        found = next((found for form in self.resources if (found := re.fullmatch(form, name))), None)
        return found.groupdict() if found else {}

    def rule_for(self, model: str) -> ModelRule:
        """Return the rule that counts for a model."""
        return next((rule for rule in self.rules if rule.fits(model)), _DEFAULT_RULE)

    def facts_of(self, model: str) -> ModelFacts:
        """Return the limits of a model.

        >>> Provider(prefix="acme").facts_of("mistralai/Devstral-Small").call_ids.exact
        9
        """
        rule = self.rule_for(model)
        facts = facts_among(self.families, model) if rule is _DEFAULT_RULE else rule.facts
        return replace(facts, call_ids=MISTRAL_IDS) if _MISTRAL.fits(model) else facts

    def lists_model(self, model: str) -> bool:
        """Return True if a rule names the model.

        >>> from sigwire.lm.providers.registry import PROVIDERS
        >>> PROVIDERS["openai"].lists_model("gpt-5-mini"), PROVIDERS["openai"].lists_model("llama-4-scout")
        (True, False)
        """
        return any(rule.fits(model) for rule in self.rules)

    def capabilities_of(self, model: str, wire: str | None = None) -> Capabilities:
        """Return the capabilities of a model. ``wire``: the name of the row's wire that the user chose.

        >>> from sigwire.lm.providers.registry import PROVIDERS
        >>> PROVIDERS["openai"].capabilities_of("gpt-3.5-turbo").images
        False
        """
        if (known := self.models.get(model)) is not None:
            return known
        on_wire = self.wires[wire].capabilities if wire is not None and wire in self.wires else None
        if on_wire is not None:
            return on_wire
        changes: Mapping[str, Any] = self.rule_for(model).capabilities
        found = replace(self.capabilities, **changes) if changes else self.capabilities
        if self.shows_reasoning and found.reasoning and not found.reasoning_hidden:
            return replace(found, reasoning_unasked=self.facts_of(model).default_effort not in (None, "off"))
        return found

    def wire_for(self, model: str, *, tools: bool, builtin: bool = False) -> str:
        """Return the name of the wire for a request; ``builtin``: with tools that the provider runs.

        >>> from sigwire.lm.providers.registry import PROVIDERS
        >>> [PROVIDERS["openai"].wire_for("gpt-4.1", tools=True, builtin=builtin) for builtin in (False, True)]
        ['chat', 'responses']
        """
        rule = self.rule_for(model)
        special = (self.builtin_wire if builtin else None) or (rule.tools_wire if tools else None)
        return special or rule.wire or next(iter(self.wires))
