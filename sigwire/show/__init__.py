"""Show objects: ``card`` (Card, HasCard), ``cleaning`` (untrusted text), ``text``, ``html``. Imports no other room."""
