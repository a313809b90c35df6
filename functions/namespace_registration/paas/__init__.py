"""Paas: their namespaces, PaasNS, quotas of one Paas, and the conditions that people wait for.

Owners: ``paas/<name>`` for a Paas, or for what one that is gone has left; ``paasns/<namespace>/<name>`` for a PaasNS in a
namespace that no Paas has.
"""
