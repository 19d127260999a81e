"""The style of a card in HTML.

Every colour is mixed with the text colour of the host, so light and dark pages need no detection. The four hues are those of
the tones. The class is doubled: with one, the rules of JupyterLab for dt, code and td win.
"""

from __future__ import annotations

__all__ = ["HUES", "STYLE"]

HUES = {"right": ("#1a9850", 75), "wrong": ("#d73027", 78), "attention": ("#c2660c", 75), "call": ("#2b7bba", 78)}
"""The hue of each tone, and its share in percent. With the text colour the contrast on white and near-black is at least 4.9."""

_LINE, _MUTED = "color-mix(in srgb,currentColor 18%,transparent)", "color-mix(in srgb,currentColor 70%,transparent)"
_FILL = "color-mix(in srgb,currentColor 5%,transparent)"
_RULES = {
    "": f"font:13px/1.5 system-ui,sans-serif;border:1px solid {_LINE};border-radius:6px;padding:8px 12px;max-width:960px;"
    "overflow-x:auto",
    "header": "display:block",
    "small": f"color:{_MUTED};font-size:12px",
    "dl": "display:grid;grid-template-columns:max-content 1fr;gap:2px 14px;margin:6px 0",
    "dt": f"color:{_MUTED};font-weight:400;width:auto",
    "dd": "margin:0;white-space:pre-wrap;overflow-wrap:anywhere;min-width:0",
    "code": "font:12px/1.5 ui-monospace,monospace;background:none;padding:0;color:inherit;white-space:pre-wrap",
    "pre": f"font:12px/1.5 ui-monospace,monospace;background:{_FILL};color:inherit;padding:6px 8px;margin:4px 0;"
    "max-height:320px;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere",
    "table": "border-collapse:collapse;margin:6px 0;font-size:12px",
    "th": f"text-align:left;padding:2px 10px 2px 0;vertical-align:top;border-bottom:1px solid {_LINE};color:{_MUTED}",
    "td": f"text-align:left;padding:2px 10px 2px 0;vertical-align:top;border-bottom:1px solid {_LINE}",
    "tr": "background:none",
    "ul": "list-style:none;margin:4px 0;padding:0",
    "li": f"margin:2px 0;padding-left:10px;border-left:2px solid {_LINE};overflow-wrap:anywhere",
    "details details": f"margin:2px 0;padding-left:12px;border-left:1px solid {_LINE}",
    "summary": "cursor:pointer",
    "img": "max-width:320px;max-height:240px;display:block",
    ".tag": f"border:1px solid {_LINE};border-radius:9px;padding:0 7px;font-size:12px;white-space:nowrap",
    **{f".{tone}": f"color:color-mix(in srgb,{hue} {share}%,currentColor)" for tone, (hue, share) in HUES.items()},
    "li.call": "color:inherit;border-left-color:color-mix(in srgb,#2b7bba 78%,currentColor)",
    "li.wrong": "border-left-color:currentColor",
}
STYLE = "".join(f".sigwire.sigwire{f' {name}' if name else ''}{{{rule}}}" for name, rule in _RULES.items())
