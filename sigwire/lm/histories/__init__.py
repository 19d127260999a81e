"""Histories for any provider: a conversation in the form that one wire accepts, and a report of all that changes.

    conversion    all changes of a history, in order
    parts         the parts that a provider understands
    thinking      thinking and opaque items
    media         kinds of media, details and names
    documents     a name for each document of a request, a text beside documents
    calls         one result for each call, directly behind its turn
    turns         system turns, neighbours of one role, the first user turn, media of results
    fields        fields that opaque parts add to a turn or to a block
    call_ids      ids that a wire accepts
    unicode       text that UTF-8 can encode
    rules         the form of history that a wire accepts
    losses        a change, as data

Pure: no wire and no model is known here. ``sigwire.lm.portable`` finds the rules of a model.
"""
