"""Show objects as cards. Imports no other room.

card      Card, HasLine (``repr``), HasCard (all surfaces)      lines     what a row holds: values, calls, pictures; tags
cleaning  untrusted text made visible; widths; numbers          values    any value as one short line of Python
text      a card as lines of a width                            terminal  a card for rich
html      a card as HTML                                        page      the parts of an HTML card, and its size
"""
