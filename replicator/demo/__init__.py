"""Room: demo. A short story on real local clusters, told to a person and judged at its end.

Uses the test kit for clusters and for the verdict, and the product only through its front door: a
topology file and the `run` command.
"""
