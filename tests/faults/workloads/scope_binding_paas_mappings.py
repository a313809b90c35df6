"""scope-binding, duty paas: what capabilities give is configured otherwise; what is withdrawn is gone everywhere."""

from ._paas import configure, story
from ._paas_accounts import FIRST, MORE, ON, READY, one, permissions_of_paas

workload = permissions_of_paas()
OTHER = configure(capabilities={"c-@": {**FIRST, "default_permissions": {"sa": ["e-@"]}}})
LESS, NONE = configure(capabilities={"c-@": {"default_permissions": {"sa": ["d-@"]}}}), configure(capabilities={"c-@": None})
story(workload, "permission-twice", OTHER, LESS, before=[*READY, one(MORE, ON)], by_itself=True)
story(workload, "capability-gone", NONE, before=[*READY, one(MORE, ON)], by_itself=True)
