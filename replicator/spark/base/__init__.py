"""Room: base. What every Spark command uses: ranges of offsets, files, progress bars, errors.

Decides which tasks read which offsets (``ranges``) and what a person reads when Spark fails
(``failures``). Start there.
"""
