"""What control topics hold: the kinds of records, the folded state, and who reads and writes them.

Decides how a record is keyed and read, and what a topic of records says as a whole; not what to write.
Begin with ``records`` (what there is), then ``state`` (the questions it answers) and ``follower``.
"""
