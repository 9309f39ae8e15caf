"""What is answered over HTTP: probes, metrics, status, pauses, the console.

Decided here: the bodies and errors of each path (``schemas``), and how often the worker is asked (``kept_answer``).
Start at ``app``; ``provider`` is what the worker behind it has to offer.
"""
