"""Asking the API server what somebody may do: a SubjectAccessReview."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenantry.api.client import Api

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


async def reviewed(api: Api, spec: Mapping[str, Any]) -> bool:
    """Whether the API server lets somebody do something; ``spec`` is that of the review.

    Raises:
        ApiError: it does not say.
    """
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": dict(spec)}
    answer = await api.request("POST", REVIEWS, None, body)
    return bool(answer["status"].get("allowed"))
