"""Fields as they grow: the events of a response become events of a signature's outputs.

    reader                    FieldReader: a response, each of its choices; what is passed on, what becomes a field
    opening                   where the outputs begin: thinking before them is left out
    free                      an answer without outputs
    sections, tags, members   the layouts in pieces: chat, XML, JSON
    sinks, texts, objects     what takes a field's text: text as it grows, objects as partial values, the rest whole
    guarded, growth           marks unguarded in pieces; a JSON value as it grows
    held, told                a text that waits for its next characters; the events of one choice

What is told is never taken back, so three rules say what may be told before the answer is whole:

- An output is told as it grows once the answer surely is one: it begins with a mark of the layout, or a thinking block that
  was opened has been closed. After any other beginning (prose, a thinking block that the prompt opened) what follows may be
  a draft, so the outputs are told together at the end.
- Held back is what can still become a mark, and blanks that may stand at the end of a value. Nothing else.
- What the layout cannot read as it comes (a constraint that changes the value, code in fences, a repaired answer) is told at
  the end of the field or of the answer, from the same reading that makes the prediction.

So for a text output everything told of it, put together, is its value. When an answer is asked for again (a repair), it begins
afresh: each ``AskStart`` of a module starts its fields over.
"""

from __future__ import annotations

from sigwire.adapters.streaming.field_reader import FieldReader

__all__ = ["FieldReader"]
