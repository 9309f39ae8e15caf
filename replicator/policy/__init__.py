"""The rules that a flow obeys, each a pure function of its arguments.

Decided here: target names, provenance and loops, selection of topics and groups, topic settings, ACLs, throttling.
Start at ``values``, the policy of a link after all defaults.
"""
