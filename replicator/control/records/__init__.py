"""The kinds of records of control topics: a pydantic model each, with its key and its stored form.

Decided here: how a fact is keyed, written and read again; what the records say as a whole is in ``store``.
Start reading in ``base`` (the form of all), then ``pair_records`` and ``role_records``.
"""
