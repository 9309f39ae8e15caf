"""Room: verify. Decides whether both sides of a flow hold the same records, over a consistent cut.

Start at ``run.verify_flow``: facts of both clusters, one case per partition (``cases``), fingerprint
rows of both sides (``fingerprint``), their comparison (``matching``), the result and its report.
"""
