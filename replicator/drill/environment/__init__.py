"""Where a drill runs: temporary local clusters, or a real link. Sets it up, injects and clears the fault.

Start at ``environment.Environment``; ``Sandbox`` and ``LinkEnvironment`` implement it.
"""
