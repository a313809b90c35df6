"""The callable that functions-framework loads: ``--target handle``."""

import functions_framework.aio

from namespace_registration.function import function

handle = functions_framework.aio.http(function.handle)
