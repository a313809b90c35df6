"""Registration namespaces: their labels and contents, the project labels of ordinary namespaces, orphans, moves, hardening.

Owners: ``project/<id>`` for a project and its registration namespace, ``namespace/<name>`` for the project label of one ordinary
namespace, ``system/<name>`` for the one registration namespace of single-namespace mode.
"""
