"""Room: drill. Rehearses failures: measures RTO and RPO, judges them and reports for auditors.

It uses the product as its users do (topology files, ``run``, role changes, ``status``) and the test kit
for load, faults and the verdict on the history. Start at ``runner``.
"""
