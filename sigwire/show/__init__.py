"""Show objects as cards. Imports no other room.

card      Card, HasLine (``repr``), HasCard (all surfaces)      lines     what a row holds: values, calls, pictures; tags
cleaning  untrusted text made visible; widths; numbers          values    any value as one short line of Python
text      a card as lines of a width                            terminal  a card for rich
html      a card as HTML                                        style     its style
pictures  small images of a user, checked                       layout    lines of a width, columns of a table
escapes   unprintable characters, widths of texts                 svg       drawings: marks, labels, scales
markdown  a card as Markdown                                      numbers   counts, money and durations for people
"""
