"""Media that a provider takes: limits as data, and images made to fit before a request is encoded (extra ``media``).

limits    MediaLimits of each family of hosts, with its source      fitting    fit_media: the messages of a request
pictures  one image: converted, scaled, compressed by Pillow      threads    in_thread: work off the event loop
"""
