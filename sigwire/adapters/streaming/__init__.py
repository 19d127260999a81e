"""Stream fields: from the events of a response to the events of a signature's outputs.

    field_reader                           FieldReader: a response, and each of its choices
    lead_in                                the start of the outputs, after thinking
    free_text, text_before_outputs         an answer without outputs; free text up to outputs in it
    chat_sections, xml_tags, json_members  the readers of the layouts: chat, XML, JSON
    text_fields, object_fields             the sinks of a field's text: deltas, partial values, whole values
    unescape, partial_json, lookahead      escaped marks, a partial JSON value, text that waits for its next characters

No event is revoked, so three rules decide what is emitted before the answer is complete:

- The deltas of an output are emitted once the answer certainly is one: it starts with a mark of the layout, or an opened
  thinking block was closed. After any other start (prose, a thinking block that the prompt opened) the text may be a draft.
  Then the outputs are emitted together at the end.
- Only text that can still become a mark, and blanks that may end a value, are held back.
- Some values cannot be read in deltas: a constraint changes the value, code is in fences, the answer is repaired. These are
  emitted at the end of the field or of the answer, from the parse that makes the prediction.

The deltas of a text output, joined, are its value. A re-asked answer starts its fields again: see ``AskStart``.
"""

from __future__ import annotations

from sigwire.adapters.streaming.field_reader import FieldReader

__all__ = ["FieldReader"]
