"""What a role change calls beside the two clusters: the operator's programs and webhooks, and the witness.

Decided here: how long each may take, and what is kept of its answer. Start at ``programs``.
"""
