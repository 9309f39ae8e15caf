"""Room: drill. Rehearsed failures with measured RTO and RPO, judged, and reported for auditors.

Sits beside ``demo``: it uses the product through its front doors (topology files, ``run``, role
changes, ``status``) and the test kit for load, faults and the verdict over the history.
"""
