"""The client library's clients: their settings, logins and errors.

Decided here: settings that every client has (``settings``) and which errors pass by themselves (``error_table``). Start
with ``client``, the types of the hot path.
"""
