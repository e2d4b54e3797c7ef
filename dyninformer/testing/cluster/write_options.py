"""What a write may ask for besides its object, read from query parameters and bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from dyninformer.testing.cluster.causes import unsupported
from dyninformer.testing.cluster.lists import integer, truthy
from dyninformer.testing.status import ApiError, bad_request, cause, invalid
from dyninformer.types import Object, Objects

_Param = Callable[[str], str | None]
_OptionsKind = Literal["CreateOptions", "UpdateOptions", "PatchOptions"]

APPLY: Final = "application/apply-patch+yaml"
MERGE: Final = "application/merge-patch+json"
JSON: Final = "application/json-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"

_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_PROPAGATIONS = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a create, update or patch, valid by construction through `write_options`.

    ``duplicates`` are the complaints of the body's decoder about repeated fields: they are
    warned of, or refused, together with unknown fields, depending on ``field_validation``.
    """

    dry_run: bool = False
    field_validation: str = ""
    field_manager: str = ""
    force: bool = False
    user_agent: str = ""
    duplicates: tuple[str, ...] = ()
    size: int = 0
    """Bytes of the body: etcd takes no object beyond a limit."""

    @property
    def manager(self) -> str:
        """The name in managedFields: the field manager, else the user agent up to its "/"."""
        return self.field_manager or self.user_agent.partition("/")[0][:128] or "unknown"

    @property
    def strict(self) -> bool:
        """An unknown or repeated field refuses the write."""
        return self.field_validation == "Strict"

    @property
    def warns(self) -> bool:
        """An unknown or repeated field earns a Warning header."""
        return self.field_validation in {"", "Warn"}


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The options of a delete or deletecollection."""

    dry_run: bool = False
    propagation_policy: str | None = None
    uid: str | None = None
    """Delete only the object of this uid."""
    resource_version: str | None = None
    """Delete only this state of the object."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a write answers: the object as stored, 200 or 201, and the Warning texts."""

    object: Object
    status: int = 200
    warnings: tuple[str, ...] = field(default=())


def write_options(
    kind: _OptionsKind, param: _Param, headers: Mapping[str, str], *, patch_type: str = ""
) -> WriteOptions:
    """The options a request asks for; ApiError 422 (400 for a bad boolean) if they are wrong."""
    causes = _dry_run_causes(param)
    manager = param("fieldManager") or ""
    force = param("force") if kind == "PatchOptions" else None
    forced = truthy(force)
    if patch_type == APPLY:
        if not manager:
            text = "Required value: is required for apply patch"
            causes.append(cause("FieldValueRequired", text, "fieldManager"))
    elif force is not None:
        text = "Forbidden: may not be specified for non-apply patch"
        causes.append(cause("FieldValueForbidden", text, "force"))
    causes += _manager_causes(manager)
    validation = param("fieldValidation") or ""
    if validation not in _VALIDATIONS:
        causes.append(unsupported("fieldValidation", validation, _VALIDATIONS))
    if causes:
        raise invalid("meta.k8s.io", kind, "", causes)
    return WriteOptions(
        dry_run=bool(param("dryRun")),
        field_validation=validation,
        field_manager=manager,
        force=forced,
        user_agent=headers.get("user-agent", ""),
    )


def delete_options(param: _Param, body: object) -> DeleteOptions:
    """The options of a DELETE: of its body, or of the query where there is no body."""
    given = _DeleteQuery(param) if body is None else _DeleteBody(body)
    causes = list(given.dry_run_causes)
    policy = given.propagation_policy
    if policy and policy not in _PROPAGATIONS:
        causes.append(unsupported("propagationPolicy", policy, (*_PROPAGATIONS, "nil")))
    if policy and given.orphan is not None:
        text = (
            "Invalid value: "
            f'"{policy}": orphanDependents and deletionPropagation cannot be both set'
        )
        causes.append(cause("FieldValueInvalid", text, "propagationPolicy"))
    if causes:
        raise invalid("meta.k8s.io", "DeleteOptions", "", causes)
    if given.orphan:
        policy = "Orphan"
    return replace(given.preconditions, dry_run=given.dry_run, propagation_policy=policy or None)


class _DeleteQuery:
    def __init__(self, param: _Param) -> None:
        self.dry_run_causes = _dry_run_causes(param)
        self.dry_run = bool(param("dryRun"))
        self.propagation_policy = param("propagationPolicy")
        integer(param("gracePeriodSeconds"))  # no object here has a use for it
        orphan = param("orphanDependents")
        self.orphan = truthy(orphan) if orphan is not None else None
        self.preconditions = DeleteOptions()


class _DeleteBody:
    def __init__(self, body: object) -> None:
        options = body if isinstance(body, dict) else {}
        kind = options.get("kind")
        if not isinstance(body, dict) or (kind or "DeleteOptions") != "DeleteOptions":
            raise bad_request(f"the body of a DELETE must be DeleteOptions, not {kind}")
        dry_run = options.get("dryRun") or []
        values = dry_run if isinstance(dry_run, list) else [dry_run]
        self.dry_run = bool(values)
        self.dry_run_causes = _dry_run_values(str(value) for value in values)
        policy = options.get("propagationPolicy")
        self.propagation_policy = None if policy is None else str(policy)
        orphan = options.get("orphanDependents")
        self.orphan = None if orphan is None else bool(orphan)
        wanted = options.get("preconditions")
        wanted = wanted if isinstance(wanted, dict) else {}
        uid, version = wanted.get("uid"), wanted.get("resourceVersion")
        self.preconditions = DeleteOptions(
            uid=None if uid is None else str(uid),
            resource_version=None if version is None else str(version),
        )


def _dry_run_causes(param: _Param) -> Objects:
    value = param("dryRun")
    return _dry_run_values([value] if value else [])


def _dry_run_values(values: Iterable[str]) -> Objects:
    found = list(values)
    if all(value == "All" for value in found):
        return []
    listed = ", ".join(f'"{value}"' for value in found)
    text = f'Unsupported value: [{listed}]: supported values: "All"'
    return [cause("FieldValueNotSupported", text, "dryRun")]


def _manager_causes(manager: str) -> Objects:
    if len(manager) > 128:
        text = "Too long: may not be more than 128 bytes"
        return [cause("FieldValueTooLong", text, "fieldManager")]
    if not manager.isprintable():
        text = f'Invalid value: "{manager}": should only contain printable characters'
        return [cause("FieldValueInvalid", text, "fieldManager")]
    return []


def wrong_patch_type(accepted: Iterable[str]) -> ApiError:
    """The 415 of a body in a format that is not taken there."""
    return ApiError(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted),
    )
