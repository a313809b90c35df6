"""The callable that functions-framework loads: ``--target handle``."""

import functions_framework.aio

from rbac_aggregation.function import function

handle = functions_framework.aio.http(function.handle)
