"""Measures and judges a drill that ran, and stores the report in a chain of checksums, with its page.

Start at ``report.make_report``; ``checksum_chain`` stores and verifies, ``page`` draws.
"""
