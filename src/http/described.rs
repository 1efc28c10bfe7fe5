//! Adds the problems of every route to the OpenAPI document, by status.
//!
//! Documentation only; routes describe their other responses themselves.

use std::collections::{BTreeMap, BTreeSet};

use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::response::Response;
use utoipa::openapi::schema::{AllOfBuilder, ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, ResponseBuilder, Schema};

use super::codes::ProblemCode as Code;
use super::described_schemas::{complete_schemas, size_integers};

/// Problems of all routes.
const ALWAYS: &[Code] = &[
    Code::MalformedRequest,
    Code::UriTooLong,
    Code::HeadersTooLarge,
    Code::InternalError,
    Code::UnsupportedTransferEncoding,
];
/// Problems of routes that use the store or the caller.
const WITH_SCOPE: &[Code] = &[
    Code::MissingApiKey,
    Code::InvalidApiKey,
    Code::MissingScope,
    Code::HostNotAllowed,
    Code::OriginNotAllowed,
    Code::ProxiedWithoutKey,
    Code::TooManyUnknownKeys,
    Code::TooManyConnections,
    Code::UnknownParameter,
    Code::InvalidParameter,
    Code::InvalidUtf8,
    Code::NulCharacter,
    Code::RateLimited,
    Code::StoreUnavailable,
];
/// Problems of routes that accept a body of any type.
const WITH_BYTES: &[Code] = &[
    Code::BodyTooLarge,
    Code::RequestTimeout,
    Code::TooMuchInFlight,
    Code::MalformedBody,
];
/// Problems of routes that accept JSON, beside those.
const WITH_JSON: &[Code] = &[
    Code::UnsupportedMediaType,
    Code::MalformedJson,
    Code::JsonTooDeep,
    Code::JsonTooLarge,
    Code::DuplicateKey,
    Code::UnknownField,
    Code::InvalidField,
];
/// Problems of routes that require JSON.
const WITH_REQUIRED_JSON: &[Code] = &[Code::EmptyBody, Code::MissingField];
/// Problems of routes with a run id.
const OF_RUN: &[Code] = &[Code::RunNotFound];
/// Problems of routes with a session id.
const OF_SESSION: &[Code] = &[Code::SessionNotFound, Code::SessionNotCommitted];
/// Problems of routes that control an active run.
const OF_CONTROL: &[Code] = &[Code::RunNotFound, Code::RunUnreachable];
/// Problems of routes that take an agent's definition.
const OF_AGENT: &[Code] = &[
    Code::AgentNotFound,
    Code::NotAllowed,
    Code::UnknownModel,
    Code::ModelNotConfigured,
    Code::UnknownTool,
    Code::UnknownHook,
    Code::InvalidHook,
    Code::InvalidPrompt,
    Code::InvalidResponseFormat,
];
/// Problems of routes that accept a run.
const OF_ACCEPTANCE: &[Code] = &[
    Code::AboveCeiling,
    Code::SessionNotFound,
    Code::SessionNotCommitted,
    Code::TooManyMessages,
    Code::InvalidHistory,
    Code::BaseSessionConflict,
    Code::ThreadBusy,
    Code::QueueFull,
    Code::TooManyRuns,
    Code::ShuttingDown,
    Code::SessionTooLarge,
    Code::AnswersRequired,
    Code::InvalidAnswers,
    Code::SessionNotWaiting,
    Code::RunNotWaiting,
];

/// Problems of routes that import a session.
const OF_IMPORT: &[Code] = &[
    Code::SessionTooLarge,
    Code::AgentNotFound,
    Code::NotAllowed,
    Code::UnknownModel,
    Code::ModelNotConfigured,
    Code::InvalidPrompt,
    Code::InvalidResponseFormat,
    Code::TooManyMessages,
    Code::InvalidHistory,
    Code::BaseSessionConflict,
];

/// Problems of routes that publish a session with other files.
const OF_CHILD: &[Code] = &[
    Code::BaseSessionConflict,
    Code::SessionTooLarge,
    Code::WorkspaceTooLarge,
    Code::StorageQuotaExceeded,
];

/// Completes the description of every route.
pub(super) fn complete(description: &mut OpenApi) {
    for (path, item) in &mut description.paths.paths {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            let is_open = !path.starts_with("/v1/");
            if is_open {
                operation.security = Some(Vec::new());
            } else {
                operation.parameters.get_or_insert_default().push(pretty().into());
            }
            operation.parameters.iter_mut().flatten().for_each(complete_parameter);
            describe_problems(operation, is_open);
        }
    }
    if let Some(components) = &mut description.components {
        complete_schemas(&mut components.schemas);
    }
}

/// Returns the codes of one route that other routes do not share.
fn own(operation_id: &str) -> &'static [&'static [Code]] {
    match operation_id {
        // The run of an earlier request with the key may have been removed since.
        "create_run" | "answer_run" => &[
            OF_AGENT,
            OF_ACCEPTANCE,
            OF_RUN,
            &[Code::MalformedId, Code::TooManyReaders],
        ],
        "get_run" => &[OF_RUN, &[Code::TooManyReaders]],
        "list_steps" => &[OF_RUN],
        "follow_run" => &[OF_RUN, &[Code::InvalidHeader, Code::TooManyReaders]],
        "stop_run" | "cancel_run" => &[OF_CONTROL],
        "steer_run" => &[OF_CONTROL, &[Code::TooManyMessages, Code::TooManySteeringMessages]],
        "get_session" | "list_messages" | "list_lineage" | "list_children" | "diff_sessions" | "verify_session" => {
            &[OF_SESSION]
        }
        "import_session" => &[OF_IMPORT],
        "list_files" => &[OF_SESSION, &[Code::FileNotFound]],
        "get_file" => &[OF_SESSION, &[Code::FileNotFound, Code::RangeNotSatisfiable]],
        "change_files" => &[OF_SESSION, OF_CHILD, &[Code::UnknownBlob]],
        "get_ancestor" => &[OF_SESSION, &[Code::NoCommonAncestor]],
        "merge_session" => &[
            OF_SESSION,
            OF_CHILD,
            &[Code::NoCommonAncestor, Code::MergeConflict, Code::MalformedId],
        ],
        "get_archive" => &[OF_SESSION],
        "put_blob" => &[&[Code::HashMismatch, Code::StorageQuotaExceeded]],
        "delete_session" => &[OF_SESSION, &[Code::SessionHasDescendants, Code::SessionInUse]],
        "get_thread" | "list_thread_messages" => &[&[Code::ThreadNotFound]],
        "delete_thread" => &[&[Code::ThreadNotFound, Code::ThreadBusy]],
        "put_thread" => &[
            OF_SESSION,
            &[
                Code::ThreadMoved,
                Code::ThreadBusy,
                Code::InvalidHeader,
                Code::MalformedId,
            ],
        ],
        "get_delivery" | "redeliver" => &[&[Code::DeliveryNotFound]],
        "get_agent" => &[&[Code::AgentNotFound]],
        "delete_agent" => &[&[Code::AgentNotFound, Code::AgentIsConfigured]],
        "put_agent" => &[OF_AGENT],
        "reload_agents" => &[&[Code::AgentFilesInvalid]],
        "readyz" => &[&[Code::StoreUnavailable, Code::NotReady]],
        _ => &[],
    }
}

fn codes_of(operation: &Operation, is_open: bool) -> BTreeSet<&'static str> {
    let id = operation.operation_id.as_deref().unwrap_or_default();
    let mut codes: Vec<Code> = [&[ALWAYS], own(id)].concat().concat();
    if !is_open {
        codes.extend(WITH_SCOPE);
    }
    let reads = ["list_", "get_", "diff_", "verify_"]
        .iter()
        .any(|verb| id.starts_with(verb));
    if reads && id != "get_run" {
        codes.push(Code::TooMuchInFlight);
    }
    // A run takes as long as its budget allows.
    if id != "create_run" && id != "answer_run" {
        codes.push(Code::AnswerTimeout);
    }
    if let Some(body) = &operation.request_body {
        codes.extend(WITH_BYTES);
        let is_json = |body: &RequestBody| body.content.contains_key("application/json");
        if matches!(body, RefOr::T(body) if is_json(body)) {
            codes.extend([WITH_JSON, WITH_REQUIRED_JSON].concat());
        }
    }
    for parameter in operation.parameters.iter().flatten() {
        let RefOr::T(parameter) = parameter else { continue };
        match (&parameter.parameter_in, parameter.name.as_str()) {
            (ParameterIn::Query, "cursor") => codes.extend([Code::InvalidCursor, Code::InvalidParameter]),
            (ParameterIn::Query, name) if name.ends_with("_id") || name == "subagent_of" => {
                codes.extend([Code::MalformedId, Code::InvalidParameter]);
            }
            (ParameterIn::Query, _) => codes.push(Code::InvalidParameter),
            // The key is checked together with the body, even if the body is optional.
            (ParameterIn::Header, "Idempotency-Key") => {
                codes.extend(
                    [
                        WITH_BYTES,
                        WITH_JSON,
                        &[Code::InvalidHeader, Code::IdempotencyKeyReused],
                    ]
                    .concat(),
                );
            }
            (ParameterIn::Path, "path") => codes.push(Code::InvalidPath),
            (ParameterIn::Path, name) if name != "name" => codes.push(Code::MalformedId),
            _ => (),
        }
    }
    codes.into_iter().map(Code::as_str).collect()
}

/// Adds a response for each status of a problem.
fn describe_problems(operation: &mut Operation, is_open: bool) {
    let codes = codes_of(operation, is_open);
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in codes.into_iter().filter_map(Code::find) {
        by_status.entry(code.status().as_u16()).or_default().push(code);
    }
    let responses = &mut operation.responses.responses;
    for (status, codes) in by_status {
        responses.insert(status.to_string(), problem(status, &codes).into());
    }
}

fn complete_parameter(parameter: &mut RefOr<Parameter>) {
    if let RefOr::T(Parameter {
        schema: Some(schema), ..
    }) = parameter
    {
        require_value(schema);
        size_integers(schema);
    }
}

/// Removes null from the schema: an optional parameter is absent, never null.
fn require_value(schema: &mut RefOr<Schema>) {
    if let RefOr::T(Schema::Object(object)) = schema
        && let SchemaType::Array(kinds) = &mut object.schema_type
    {
        let kind = kinds.iter().find(|kind| **kind != Type::Null).cloned();
        object.schema_type = kind.unwrap_or_default().into();
    }
}

fn pretty() -> Parameter {
    ParameterBuilder::new()
        .name("pretty")
        .parameter_in(ParameterIn::Query)
        .description(Some("Answers with JSON that has line breaks; by default false"))
        .schema(Some(ObjectBuilder::new().schema_type(Type::Boolean)))
        .build()
}

fn problem(status: u16, codes: &[Code]) -> Response {
    let lines: Vec<String> = codes
        .iter()
        .map(|code| format!("- `{}`: {}", code.as_str(), code.title()))
        .collect();
    let names = codes.iter().map(|code| code.as_str());
    let code = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names));
    let schema = AllOfBuilder::new()
        .item(Ref::from_schema_name("Problem"))
        .item(ObjectBuilder::new().property("code", code));
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let mut response = ResponseBuilder::new()
        .description(lines.join("\n"))
        .content("application/problem+json", content);
    if matches!(status, 429 | 503) {
        let seconds = ObjectBuilder::new().schema_type(Type::Integer);
        let header = HeaderBuilder::new()
            .schema(Some(seconds))
            .description(Some("Seconds after which trying again may help"));
        response = response.header("Retry-After", header.build());
    }
    if status == 401 {
        let header = HeaderBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::String)));
        response = response.header("WWW-Authenticate", header.build());
    }
    response.build()
}
