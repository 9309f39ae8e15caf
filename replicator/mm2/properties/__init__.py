"""What a properties file of MirrorMaker 2 says, as MirrorMaker 2 and Java read it.

Decided here: whose key it is and which value counts (``scopes``), which keys have no counterpart (``unmapped``), and
that every key gets one verdict (``verdicts``). Start with ``java_properties``.
"""
