"""Room: demo. A demonstration on real local clusters, with a verdict on every record at the end.

It uses the test kit for clusters and for the verdict, and the product as its users do: a topology file
and the `run` command. Start at ``story``.
"""
