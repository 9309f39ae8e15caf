"""The drill file: its models, its rules, its problems with their places, and when a drill is aborted.

Start at ``load.load_drill_text``; the rest of the room reads only ``plan.Drill``.
"""
