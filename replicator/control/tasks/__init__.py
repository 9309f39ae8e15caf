"""What a controller does at intervals beside its rounds: groups, ACLs, canaries, last contact, MirrorMaker 2.

Decided here: how often each is done, and which of its findings people see.
Start reading in ``task``; ``registry`` lists all of them. ``sync`` carries over, ``watch`` looks.
"""
