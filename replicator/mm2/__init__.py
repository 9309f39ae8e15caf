"""MirrorMaker 2's topics and bytes, so that its clients and tools work on what we replicate."""
