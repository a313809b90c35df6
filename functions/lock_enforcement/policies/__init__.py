"""Policies of Flux tenancy: whether what is there is what the TenancyProfile asks for; told, and never written.

Owner: ``policies/default``; there is one.
"""
