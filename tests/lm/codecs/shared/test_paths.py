"""Names of models in the paths of URLs."""

from __future__ import annotations

import pytest

from sigwire import ConfigurationError
from sigwire.lm.client import LM
from sigwire.testing import FakeProvider


@pytest.mark.parametrize("name", ["../../files/x", "models/../../x", "..", "a/./b"])
def test_name_that_leads_to_another_path_is_refused_before_sending(name: str) -> None:
    with FakeProvider(lambda request: "hi") as provider:
        lm = LM(f"gemini/{name}", base_url=provider.url("gemini"), api_key="k")
        with pytest.raises(ConfigurationError, match="has the path segment"):
            lm("x")
        assert len(provider.requests) == 0
