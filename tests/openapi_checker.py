"""Whether a value, or a reply of the service, is what its description says."""

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": int | float,
    "null": type(None),
}


def resolved(description, node):
    """What a reference stands for."""
    while "$ref" in node:
        place = description
        for part in node["$ref"].removeprefix("#/").split("/"):
            place = place[part]
        node = place
    return node


def fault_of(description, schema, value, place=""):
    """Where a value breaks its schema, or None; by the keywords that are used here."""
    schema = resolved(description, schema)
    kinds = schema.get("type", list(TYPES))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    is_number = isinstance(value, TYPES["number"]) and not isinstance(value, bool)
    fits = any(
        is_number if kind in ("number", "integer") else isinstance(value, TYPES[kind])
        for kind in kinds
    )
    if not fits or value not in schema.get("enum", [value]):
        return f"{place} is {value!r}"
    if is_number and value <= schema.get("exclusiveMinimum", value - 1):
        return f"{place} is too small"
    faults = [fault_of(description, s, value, place) for s in schema.get("allOf", ())]
    if isinstance(value, dict):
        faults += [
            f"{place} lacks {k}" for k in schema.get("required", ()) if k not in value
        ]
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties", {})
        for key, item in value.items():
            if key not in properties and others is False:
                faults.append(f"{place} has {key}")
            part = properties.get(key, others or {})
            faults.append(fault_of(description, part, item, f"{place}/{key}"))
    if isinstance(value, list):
        for k, item in enumerate(value):
            faults.append(
                fault_of(description, schema.get("items", {}), item, f"{place}/{k}")
            )
    return next(filter(None, faults), None)


def fault_of_reply(description, path, method, reply):
    """What the description does not say of a reply."""
    status, content, headers = reply
    replies = description["paths"][path][method.lower()]["responses"]
    described = replies.get(str(status), replies.get(f"{status // 100}XX"))
    if described is None:
        return f"status {status}"
    kind = headers["content-type"].partition(";")[0]
    content_of = resolved(description, described)["content"]
    if kind not in content_of:
        return f"content of type {kind}"
    return fault_of(description, content_of[kind]["schema"], content)
