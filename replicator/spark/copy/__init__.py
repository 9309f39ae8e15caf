"""Room: copy. A range of a partition copied exactly once, by a Spark task or a process of this machine.

``bulk_plan`` decides which ranges there are, ``tasks`` where they run. Start at ``task.copy_order``, which
copies one range; ``bulk`` and ``stream`` use it.
"""
