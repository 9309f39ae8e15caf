"""The HTTP face of a worker: who is let in, what is answered, and the console.

``admission`` decides about each request (pure); ``connection`` bounds clients so that probes always get through.
Start at ``app`` for the routes, at ``provider`` for what the worker behind them has to answer.
"""
