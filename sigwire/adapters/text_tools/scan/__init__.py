"""One scan of a text for calls: ``scanner`` decides, on a ``compiled`` table of grammars.

scanner        CallScanner: markers, line starts, code and fences, forms without a marker, thinking blocks
compiled       grammars by opener and first character         marks     the marks of thinking blocks
quotation      marks of quotation, and the quoted words of a line
output_buffer  events in order, and what waits                brackets  where a bracketed value ends
"""
