"""One scan of a text for calls: ``scanner`` decides, on a ``compiled`` table of grammars.

scanner        CallScanner: markers, line starts, forms without a marker, thinking blocks
quotation      QuoteFilter, its base: inline code, fences, and how far the text is emitted
output_buffer  events in order, and what waits
brackets       where a bracketed value ends
"""
