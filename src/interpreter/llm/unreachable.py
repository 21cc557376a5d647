"""Why no connection could be made, in words that say what to do: the server, a proxy, or its certificate."""

from __future__ import annotations

import ssl

from interpreter.errors import ModelUnreachableError
from interpreter.llm.providers import Endpoint


def unreachable(endpoint: Endpoint, failure: Exception) -> ModelUnreachableError:
    """The error for a connection that httpx could not make."""
    import httpx

    tls = _tls_failure(failure)
    if tls is not None:
        return _without_trust(endpoint, tls)
    if isinstance(failure, httpx.ProxyError):
        return ModelUnreachableError(
            f"The proxy {_proxy(endpoint)} does not let us through to {endpoint.base_url} ({failure}). "
            f"Check {_VARIABLES}; NO_PROXY names the servers that need none."
        )
    error = ModelUnreachableError(f"Nothing answers at {endpoint.base_url} ({failure}). {_advice(endpoint)}")
    error.retryable = not endpoint.is_loopback  # a server that is not there will not come by waiting
    return error


_VARIABLES = "HTTPS_PROXY, HTTP_PROXY and ALL_PROXY in the environment"


def _without_trust(endpoint: Endpoint, tls: ssl.SSLError) -> ModelUnreachableError:
    if isinstance(tls, ssl.SSLCertVerificationError):
        words = (
            f"The certificate of {endpoint.base_url} is not trusted ({tls.verify_message}). If a firewall of "
            "your company stands in between, set SSL_CERT_FILE to the file with its certificate; else check "
            "the address and the clock of this machine."
        )
    else:
        words = (
            f"No secure connection to {endpoint.base_url} could be made ({tls.reason or tls}). If the server "
            "speaks plain HTTP, write http:// in --api_base; else something in between may be in the way."
        )
    error = ModelUnreachableError(words)
    error.retryable = False
    error.reason = "no secure connection"
    return error


def _tls_failure(failure: BaseException | None) -> ssl.SSLError | None:
    """The failure of the encryption that is behind another one, if that is what it was."""
    while failure is not None:
        if isinstance(failure, ssl.SSLError):
            return failure
        failure = failure.__cause__ or failure.__context__
    return None


def _advice(endpoint: Endpoint) -> str:
    if endpoint.provider.startswith("ollama"):
        return "Is Ollama running? Start it with `ollama serve`."
    if endpoint.is_loopback:
        return "Start the model server, or check --api_base."
    if proxy := _proxy(endpoint):
        return f"Requests go through the proxy {proxy}: check that it runs, and {_VARIABLES}."
    return "Check the network, and --api_base if you set it."


def _proxy(endpoint: Endpoint) -> str:
    """The proxy that requests to the endpoint go through, without a password in its address."""
    from urllib.parse import urlsplit
    from urllib.request import getproxies, proxy_bypass

    address = urlsplit(endpoint.base_url)
    if proxy_bypass(address.hostname or ""):
        return ""
    proxies = getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all") or ""
    scheme, found, rest = proxy.rpartition("://")
    return scheme + found + rest.rpartition("@")[2]
