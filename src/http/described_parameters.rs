//! Describes the parameters and the headers that mean the same at all routes. Handlers only name
//! them. Documentation only.

use utoipa::openapi::header::Header;
use utoipa::openapi::path::Parameter;
use utoipa::openapi::schema::{Object, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};

use super::described_schemas::size_integers;
use super::idempotency::MAX_KEY;
use super::paging::MAX_LIMIT;

/// Parameters and headers of requests.
const PARAMETERS: &[(&str, &str)] = &[
    ("limit", "1 to 200, by default 50"),
    ("cursor", "The `next_cursor` of the page before"),
    (
        "Idempotency-Key",
        "The caller's name for the request, 1 to 255 visible ASCII characters: sent again, it is answered with the same \
         run or session",
    ),
    (
        "Prefer",
        "`respond-async` (RFC 7240) makes a synchronous run asynchronous",
    ),
    ("If-None-Match", "The `ETag` of an earlier answer"),
    ("X-Console", "`1`, from pages of the console"),
];

/// Headers of responses.
const HEADERS: &[(&str, &str)] = &[
    ("Location", "The path of the run, the session or the thread"),
    ("ETag", "The root hash of the session, quoted"),
    (
        "X-Total",
        "The number of rows on all pages; 1,000 stands for 1,000 or more",
    ),
    (
        "Idempotency-Replayed",
        "`true` where the answer is that of an earlier request with the key",
    ),
    (
        "Preference-Applied",
        "`respond-async` where the header `Prefer` asked for it",
    ),
];

/// Completes a parameter that has no words of its own.
pub(super) fn complete_parameter(parameter: &mut RefOr<Parameter>) {
    let RefOr::T(parameter) = parameter else { return };
    if parameter.description.is_none() {
        parameter.description = words_for(&parameter.name, PARAMETERS);
    }
    if let Some(schema) = &mut parameter.schema {
        if let RefOr::T(Schema::Object(object)) = schema {
            bound(&parameter.name, object);
            require_value(object);
        }
        size_integers(schema);
    }
}

/// Completes a header of a response that has no words of its own.
pub(super) fn complete_header(name: &str, header: &mut RefOr<Header>) {
    if let RefOr::T(header) = header
        && header.description.is_none()
    {
        header.description = words_for(name, HEADERS);
    }
}

fn words_for(name: &str, described: &[(&str, &str)]) -> Option<String> {
    let found = described.iter().find(|(known, _)| *known == name);
    found.map(|(_, words)| (*words).to_owned())
}

/// Adds the bounds of the value.
fn bound(name: &str, value: &mut Object) {
    match name {
        "limit" => {
            value.minimum = Some(1_u32.into());
            value.maximum = Some(MAX_LIMIT.into());
        }
        "Idempotency-Key" => value.pattern = Some(format!("^[!-~]{{1,{MAX_KEY}}}$")),
        _ => (),
    }
}

/// Removes null from the schema: an optional parameter is absent, never null.
fn require_value(value: &mut Object) {
    if let SchemaType::Array(kinds) = &mut value.schema_type {
        let kind = kinds.iter().find(|kind| **kind != Type::Null).cloned();
        value.schema_type = kind.unwrap_or_default().into();
    }
}
