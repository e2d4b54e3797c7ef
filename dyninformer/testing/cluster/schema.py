"""What a resource's schema does to objects: on the way out, and on the way in.

CEL rules (x-kubernetes-validations) are not evaluated: the one thing a real server's
schema check does that this one does not.
"""

from __future__ import annotations

from dyninformer.testing.cluster.bodies import UnreadableError
from dyninformer.testing.cluster.events import EVENTS, converted
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.scale_paths import scale_spec_causes, scale_status_causes
from dyninformer.testing.cluster.validation import RULES_SKIPPED, schema_causes, status_causes
from dyninformer.types import Object

Causes = list[Object]
_BLOCKING = frozenset(
    f"FieldValue{why}" for why in ("Required", "NotSupported", "TooLong", "TooMany", "TypeInvalid")
)


def prepare_for_read(resource: Resource, obj: Object) -> Object:
    """``obj`` as a reader of ``resource`` sees it: in its version, defaulted and pruned.

    Shares everything it does not change, and is the very same object if that is all.
    """
    if obj.get("apiVersion") != resource.api_version or obj.get("kind") != resource.kind:
        if resource.collection == EVENTS:
            obj = converted(obj, resource.group)
        obj = {**obj, "apiVersion": resource.api_version, "kind": resource.kind}
    if resource.structural is None:
        return obj
    seen: Object = resource.structural.coerce(obj, root=True)
    return seen


def admit(
    resource: Resource, obj: Object, field_validation: str = "", told: tuple[str, ...] = ()
) -> tuple[Object, tuple[str, ...]]:
    """A written object, pruned and with its defaults, and the warnings of fields dropped.

    ``told`` are the complaints that reading the body gave rise to. Under Strict, any
    complaint is an UnreadableError.
    """
    unknown = () if resource.structural is None else resource.structural.unknown(obj, root=True)
    complaints = (*told, *(f'unknown field "{path}"' for path in sorted(unknown)))
    if complaints and field_validation == "Strict":
        raise UnreadableError(f"strict decoding error: {', '.join(complaints)}")
    warnings = complaints if field_validation in {"", "Warn"} else ()
    return prepare_for_read(resource, obj), warnings


def content_causes(resource: Resource, obj: Object, subresource: str = "") -> Causes:
    """What is wrong with an object by its CRD's schema and scale subresource."""
    if resource.structural is None:
        return []
    paths = resource.scale or {}
    if subresource == "status":
        return [*status_causes(resource.structural, obj), *scale_status_causes(paths, obj)]
    return [
        *schema_causes(resource.structural, obj),
        *scale_spec_causes(paths, obj),
        *scale_status_causes(paths, obj),
    ]


def with_rules_note(resource: Resource, causes: Causes) -> Causes:
    """The causes, and the server's note that its CEL rules were not looked at.

    A value that is merely out of bounds does not keep the rules from being looked at.
    """
    blocking = any(each["reason"] in _BLOCKING for each in causes)
    if blocking and resource.structural is not None and resource.structural.has_rules:
        return [*causes, RULES_SKIPPED]
    return causes
