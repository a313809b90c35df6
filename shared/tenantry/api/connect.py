"""Where the API server is and who we are: kubeconfig, or the service account of the pod.

`tenantry.api.kubeconfig` chooses and checks, the official client loads it, and `tenantry.api.tokens` renews a token that expires.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tenantry.api import kubeconfig as kubeconfigs
from tenantry.api.errors import ConnectError
from tenantry.api.official import Configuration, incluster_config, kube_config
from tenantry.api.tokens import ExecToken, Token, TokenFile

SERVICE_ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def current_namespace(kubeconfig: Path | None = None) -> str:
    """The namespace of the kubeconfig's current context, or of the pod; ``default`` where neither names one.

    Raises:
        ConnectError: the kubeconfig cannot be used.
    """
    found = kubeconfigs.find(kubeconfig)
    if found is not None:
        return found.namespace or "default"
    try:
        return (SERVICE_ACCOUNT_DIR / "namespace").read_text().strip()
    except OSError:
        return "default"


async def load_configuration(kubeconfig: Path | None = None) -> tuple[Any, Token | None]:
    """The client configuration and the token it follows, if any.

    Order: the argument, ``KUBECONFIG``, the pod's service account, ``~/.kube/config``.

    Raises:
        ConnectError: nothing of these exists or can be used.
    """
    configuration = Configuration()
    # Looking up the environment's proxies costs two thread hops a request; a proxy is named in the kubeconfig.
    configuration.client_session_kwargs = {"trust_env": False}
    found = kubeconfigs.find(kubeconfig)
    if found is None:
        return configuration, await _in_cluster(configuration)
    user = dict(found.user)
    token: Token | None = None
    if "exec" in user:
        token = program = ExecToken(user.pop("exec"), found.user_key)
        user |= await program.ask()
    elif "tokenFile" in user:
        token = TokenFile(Path(user.pop("tokenFile")), user.pop("token", ""))
    try:
        await kube_config.load_kube_config_from_dict(found.as_user(user), client_configuration=configuration)
    except Exception as error:
        raise ConnectError(f"kubeconfig {found.files}: {error}") from error
    if found.cluster.get("disable-compression"):
        configuration.client_session_kwargs["skip_auto_headers"] = ("Accept-Encoding",)
    if token is not None:
        await token.install(configuration)
    return configuration, token


async def _in_cluster(configuration: Any) -> TokenFile:
    token_path, ca_path = SERVICE_ACCOUNT_DIR / "token", SERVICE_ACCOUNT_DIR / "ca.crt"
    try:
        incluster_config.InClusterConfigLoader(
            token_filename=str(token_path), cert_filename=str(ca_path), try_refresh_token=False
        ).load_and_set(configuration)
    except Exception as error:
        raise ConnectError(
            f"no API server to talk to: pass --kubeconfig FILE, set KUBECONFIG, or run in a pod with a service account ({error})"
        ) from error
    token_file = TokenFile(token_path)
    await token_file.install(configuration)
    return token_file
