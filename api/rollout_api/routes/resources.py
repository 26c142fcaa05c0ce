"""Resources of the embedded store: `/v1/{plural}`."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Query, Response
from pydantic import BaseModel, ConfigDict, ValidationError

from rollout_api.core.errors import InvalidSpecError
from rollout_api.problems import in_words
from rollout_api.routes.dependencies import GatewayDependency, KindDependency, Namespace
from rollout_api.routes.raw_json import array, json_response
from rollout_crds.base import DnsLabel
from rollout_crds.resources import Resource, ResourceKind
from rollout_crds.validation import FieldError, field_errors, validate

router = APIRouter(prefix="/v1", tags=["resources"])


class StatusBody(BaseModel):
    """A new status."""

    model_config = ConfigDict(extra="forbid")

    status: dict[str, Any]


class FinalizersBody(BaseModel):
    """New finalizers."""

    model_config = ConfigDict(extra="forbid")

    finalizers: list[str]


@router.get("/{plural}")
async def list_resources(
    gateway: GatewayDependency,
    kind: KindDependency,
    namespace: Annotated[DnsLabel | None, Query()] = None,
) -> Response:
    """List a kind, in all namespaces unless one is named."""
    found = await gateway.resources.list_kind(kind, namespace)
    items = array(change.body for change in found.changes if change.body is not None)
    return json_response(f'{{"resourceVersion":"{found.resource_version}","items":{items}}}')


@router.get("/{plural}/{name}")
async def get_resource(
    gateway: GatewayDependency, kind: KindDependency, name: str, namespace: Namespace = "default"
) -> Response:
    """Read one resource."""
    return _answer(await gateway.resources.get(kind, namespace, name), 200)


@router.put("/{plural}/{name}")
async def put_resource(
    gateway: GatewayDependency,
    kind: KindDependency,
    name: str,
    body: Annotated[dict[str, Any], Body()],
    namespace: Annotated[DnsLabel | None, Query()] = None,
    if_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Create a resource, or replace its spec, labels and annotations; its status is kept."""
    submitted = _parse(kind, name, namespace, body)
    resource, created = await gateway.resources.put(kind, submitted, _version(if_match))
    return _answer(resource, 201 if created else 200)


@router.put("/{plural}/{name}/status")
async def put_status(
    gateway: GatewayDependency,
    kind: KindDependency,
    name: str,
    body: StatusBody,
    namespace: Namespace = "default",
) -> Response:
    """Replace the status: for the operator and nodes."""
    return _answer(await gateway.resources.set_status(kind, namespace, name, body.status), 200)


@router.put("/{plural}/{name}/finalizers")
async def put_finalizers(
    gateway: GatewayDependency,
    kind: KindDependency,
    name: str,
    body: FinalizersBody,
    namespace: Namespace = "default",
) -> Response:
    """Replace the finalizers: for the operator and nodes."""
    resource = await gateway.resources.set_finalizers(kind, namespace, name, body.finalizers)
    return _answer(resource, 200)


@router.delete("/{plural}/{name}")
async def delete_resource(
    gateway: GatewayDependency, kind: KindDependency, name: str, namespace: Namespace = "default"
) -> Response:
    """Delete a resource: 200 when it is gone, 202 while finalizers hold it back."""
    resource, gone = await gateway.resources.delete(kind, namespace, name)
    return _answer(resource, 200 if gone else 202)


def _answer(resource: Resource, status: int) -> Response:
    return json_response(resource.model_dump_json(by_alias=True), status)


def _version(if_match: str | None) -> str | None:
    return if_match.strip().strip('"') if if_match is not None else None


def _parse(kind: ResourceKind, name: str, namespace: str | None, body: dict[str, Any]) -> Resource:
    try:
        submitted = validate(kind.model, {k: v for k, v in body.items() if k != "status"})
    except ValidationError as error:
        fields = field_errors(error, kind.model)
        raise InvalidSpecError(in_words(fields), fields) from error
    wanted = {"name": name, "namespace": namespace or submitted.metadata.namespace}
    for field, value in wanted.items():
        found = getattr(submitted.metadata, field)
        if found != value:
            message = f"must be {value!r} as in the URL, not {found!r}"
            wrong = FieldError(f"metadata.{field}", message)
            msg = f"metadata.{field} {message}"
            raise InvalidSpecError(msg, [wrong])
    return submitted
