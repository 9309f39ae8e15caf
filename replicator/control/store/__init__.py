"""What control topics say as a whole: the folded state, and who reads, follows and writes them.

Decided here: what holds now, given all records of a topic, and who may write; the kinds are in ``records``.
Start reading in ``state`` (the questions it answers), then ``follower`` and ``controller_writer``.
"""
