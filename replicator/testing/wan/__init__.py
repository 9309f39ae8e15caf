"""Package: testing/wan. A long line on this machine: delay, loss and a rate, between here and a network namespace.

What happens to a packet is decided in line_rules.py; relay.py carries packets; wan_line.py is what tests use.
Linux and root only.
"""
