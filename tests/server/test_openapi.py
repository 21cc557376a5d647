"""The OpenAPI document matches the server, checked with schemathesis."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from interpreter.frontends.server.application import ALL_ROUTES
from interpreter.frontends.server.routes import openapi
from running_server import Serving


def operations() -> list[Any]:
    document = openapi(ALL_ROUTES)
    return [
        (path, method)
        for path, methods in document["paths"].items()
        for method in methods
        if (path, method) != ("/api/data", "delete")
    ]


@pytest.fixture(scope="module")
def session(shared: Serving) -> str:
    return shared.session()


@functools.cache
def schema_and_checks() -> tuple[Any, list[Any]]:
    import schemathesis  # slow to import, and every worker collects every test
    from schemathesis.specs.openapi import checks

    wanted = [
        schemathesis.checks.not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
        checks.unsupported_method,
        checks.ignored_auth,
    ]
    return schemathesis.openapi.from_dict(openapi(ALL_ROUTES)), wanted


def check_operation(served: Serving, session: str, path: str, method: str, examples: int) -> None:
    schema, checks = schema_and_checks()
    schema.config.base_url = served.url
    operation = schema[path][method.upper()]

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(case=operation.as_strategy(), known=st.booleans())
    def check(case: Any, known: bool) -> None:
        if known and "id" in case.path_parameters:
            case.path_parameters["id"] = session
        if "wait" in (case.query or {}):
            case.query["wait"] = 0
        served.application.gate._failures._left.clear()
        case.call_and_validate(headers={"Authorization": f"Bearer {served.users.token}"}, checks=checks)

    check()


@pytest.mark.parametrize(("path", "method"), operations())
def test_operations_match_the_openapi_document(shared: Serving, session: str, path: str, method: str) -> None:
    check_operation(shared, session, path, method, 3)


@pytest.mark.full
@pytest.mark.parametrize(("path", "method"), operations())
def test_operations_match_the_document_for_many_inputs(shared: Serving, session: str, path: str, method: str) -> None:
    check_operation(shared, session, path, method, 200)


def test_every_operation_has_its_own_name() -> None:
    names = [each["operationId"] for methods in openapi(ALL_ROUTES)["paths"].values() for each in methods.values()]
    assert len(names) == len(set(names))
