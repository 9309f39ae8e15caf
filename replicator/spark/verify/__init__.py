"""Room: verify. Decides whether both sides of a flow hold the same records, over a consistent cut.

Start at ``run.verify_flow``: what ``compare`` found becomes a result (``result``), the differing records
themselves (``details``) and a page (``html``).
"""
