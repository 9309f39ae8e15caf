"""Room: compare. What ``verify`` and ``audit`` share: both sides of a flow, record by record.

Decided here: what is compared with what (``cases``), what one record is reduced to (``fingerprint``),
and what a pair of them means (``matching``). Start at ``facts``, which reads both clusters.
"""
