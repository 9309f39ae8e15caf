"""Room: control. Observes both clusters of a pair, decides what must change, and stores decisions in control topics.

Nothing here moves records; ``lanes`` says what each lane copies. Start at ``controller.controller``, then
``reconcile.decide`` (the pure decision) and ``store.state`` (what is on record).
"""
