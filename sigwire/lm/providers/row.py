"""A provider: the shape of a row. Which rows there are is in ``provider_rows``, how one is found in ``providers``.

    Provider    prefix, where it is reached, which keys it takes, the wires it speaks, what its models can do
    Key         an environment variable that holds a key, and the header that carries it
    Wire        a codec and the host's dialect of it
    ModelRule   model names (patterns) that differ from the rest of the row: abilities, facts, another wire
    Variable    a piece of a URL that the user fills in
    SimpleBackend     what answers the requests for one model, where that is not HTTP of ours

Codecs are named and not imported: a row costs nothing until a model of it is used. No key is ever read here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from sigwire.core.capabilities import Capabilities
from sigwire.errors import LMError
from sigwire.lm.codecs.shared.interface import Codec, ModelFacts, WireProfile

__all__ = ["ApiKey", "ModelRule", "Provider", "UrlVariable", "Wire", "without_slash"]


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key: the environment variable that holds it, the header that carries it, and how it stands there.

    ``host``: whose key it is, where that is not the row's own host.

    >>> Key("ACME_API_KEY").headers("k")
    {'authorization': 'Bearer k'}
    """

    variable: str
    header: str = "authorization"
    form: str = "Bearer {}"
    host: str | None = None

    def headers(self, key: str) -> dict[str, str]:
        """The header with the key in it."""
        return {self.header: self.form.format(key)}


@dataclass(frozen=True, slots=True)
class Wire:
    """A codec and a dialect of it, as objects or by name.

    ``codec`` is a module with a codec's functions, by name one of ``sigwire.lm.codecs``. ``dialect`` by name is
    ``module:NAME`` there; ``elsewhere`` is the dialect for models that no rule of the row names, at hosts that are not the
    row's own. ``path`` replaces the dialect's path; ``query`` goes onto the URL, with ``{variables}``.

    >>> codec, dialect = Wire("openai_chat", "openai_chat.profiles:GROQ").load()
    >>> dialect.family, dialect.path
    ('groq', '/chat/completions')
    """

    codec: str | Codec[Any] = "openai_chat"
    profile: str | WireProfile = "openai_chat.profiles:COMPATIBLE"
    foreign_host: str | WireProfile | None = None
    path: str | None = None
    query: Mapping[str, str] = field(default_factory=dict[str, str])

    def load(self, *, foreign_host: bool = False) -> tuple[Codec[Any], WireProfile]:
        """Both as objects."""
        codec = _codec_module(self.codec) if isinstance(self.codec, str) else self.codec
        profile = (self.foreign_host if foreign_host else None) or self.profile
        if isinstance(profile, str):
            module, _, name = profile.partition(":")
            profile = cast(WireProfile, getattr(_codec_module(module), name))
        return cast("Codec[Any]", codec), profile if self.path is None else replace(profile, path=self.path)


def _codec_module(name: str) -> Any:
    return importlib.import_module(f"sigwire.lm.codecs.{name}")


@dataclass(frozen=True, slots=True)
class UrlVariable:
    """A piece of a URL that the user fills in: an argument of ``LM``, else environment variables, else the default."""

    variables: tuple[str, ...] = ()
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRule:
    """How some models of a row differ from the rest. The first rule of the row with a fitting name counts.

    ``names`` are patterns (``*``, ``?``, ``[...]``) against the whole name in lower case. ``capabilities`` are changes
    to the row's. ``wire`` names the row's wire that these models are spoken to over; ``tools_wire`` the one for requests
    with tools.
    """

    names: tuple[str, ...]
    facts: ModelFacts = ModelFacts()
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    wire: str | None = None
    tools_wire: str | None = None

    def fits(self, model: str) -> bool:
        """Whether a model is meant.

        >>> ModelRule(names=("gpt-5*",)).fits("gpt-5-mini")
        True
        """
        return any(fnmatchcase(model.lower(), name) for name in self.names)


_OTHERWISE = ModelRule(names=("*",))


def without_slash(url: str) -> str:
    """A base URL as it is joined with a path.

    >>> without_slash("https://llm.acme.example/v1/ ")
    'https://llm.acme.example/v1'
    """
    return url.strip().rstrip("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One row. With a prefix, a ``base_url`` and a key it describes a host that speaks OpenAI's chat completions.

    Where: ``base_url`` may hold ``{variables}`` (or be a function of their values); empty, the user has to name one.
    ``base_variables`` are the environment variables that override it, the first that is set. ``tidy`` makes a base URL
    of what users write.

    With what: ``keys``, the first whose variable is set; one given in code is sent like the first. ``key`` says whether
    one is needed. A key from the environment is only sent to the row's own host or where the environment says, unless
    ``own_host``: the host is the user's, so the key belongs wherever the base URL points. ``hosts`` are the row's own
    where the base URL does not say (``*`` first for any beginning). ``header_variables``: further headers from the
    environment.

    What: ``wires`` by name, the first is the usual one, ``builtin_wire`` the one for requests with tools that the provider
    runs (web search); ``capabilities`` of the models, ``rules`` for those that differ; ``hints``: the last sentence of an
    error; ``aliases``: other prefixes for the row.

    Instead of all of this ``backend``: ``module:function`` that makes a ``SimpleBackend`` from a model's name and a
    ``ConnectionOptions``. ``needs``: a package that must be installed for it, which is also the name of sigwire's extra.
    ``models``: the only ones there are, where that is known, with their abilities.
    """

    prefix: str
    base_url: str | Callable[[Mapping[str, str]], str] = ""
    base_variables: tuple[str, ...] = ()
    tidy: Callable[[str], str] = without_slash
    variables: Mapping[str, UrlVariable] = field(default_factory=dict[str, UrlVariable])
    keys: tuple[ApiKey, ...] = ()
    key: Literal["needed", "optional"] = "needed"
    own_host: bool = False
    hosts: tuple[str, ...] = ()
    header_variables: Mapping[str, str] = field(default_factory=dict[str, str])
    wires: Mapping[str, Wire] = field(default_factory=lambda: {"chat": Wire()})
    builtin_wire: str | None = None
    capabilities: Capabilities = Capabilities(
        native_tools=True, parallel_tool_calls=True, tool_choice=True, json_schema=True, json_object=True,
        tools_with_json_schema=True, images=True,
    )  # fmt: skip
    rules: tuple[ModelRule, ...] = ()
    hints: Mapping[type[LMError], str] = field(default_factory=dict[type[LMError], str])
    aliases: tuple[str, ...] = ()
    backend: str = ""
    needs: str = ""
    models: Mapping[str, Capabilities] = field(default_factory=dict[str, Capabilities])

    @property
    def own_hosts(self) -> tuple[str, ...]:
        """The hosts that are the row's own; those below them are too.

        >>> from sigwire.lm.providers.registry import PROVIDERS
        >>> PROVIDERS["openai"].homes
        ('api.openai.com',)
        """
        if self.hosts or callable(self.base_url):
            return self.hosts
        return (urlsplit(self.base_url).hostname or "",) if self.base_url else ()

    def rule_for(self, model: str) -> ModelRule:
        """The rule that counts for a model."""
        return next((rule for rule in self.rules if rule.fits(model)), _OTHERWISE)

    def lists_model(self, model: str) -> bool:
        """Whether a rule names the model.

        >>> from sigwire.lm.providers.registry import PROVIDERS
        >>> PROVIDERS["openai"].knows("gpt-5-mini"), PROVIDERS["openai"].knows("llama-4-scout")
        (True, False)
        """
        return any(rule.fits(model) for rule in self.rules)

    def capabilities_of(self, model: str) -> Capabilities:
        """What a model can do.

        >>> from sigwire.lm.providers.registry import PROVIDERS
        >>> PROVIDERS["openai"].capabilities_of("gpt-3.5-turbo").images
        False
        """
        known = self.models.get(model)
        return known if known is not None else replace(self.capabilities, **self.rule_for(model).capabilities)

    def wire_for(self, model: str, *, tools: bool, builtin: bool = False) -> str:
        """The name of the wire for a request to a model, with or without tools, built-in ones among them.

        >>> from sigwire.lm.providers.registry import PROVIDERS
        >>> [PROVIDERS["openai"].wire_for("gpt-4.1", tools=True, builtin=builtin) for builtin in (False, True)]
        ['chat', 'responses']
        """
        rule = self.rule_for(model)
        special = (self.builtin_wire if builtin else None) or (rule.tools_wire if tools else None)
        return special or rule.wire or next(iter(self.wires))
