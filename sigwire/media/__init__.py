"""Bytes of images, sound, video and documents: their type and size in pixels, and the explicit fetch of a URL.

sniff       the type of bytes, the pixels of an image      addresses   the rules for hosts and addresses
fetching    fetch                                          exchange    the checked exchanges of a fetch (loads aiohttp)
policy      FetchPolicy, FetchedFile
errors      FetchError, UnsupportedMedia                   data_uris   base64 data with a media type
"""
