//! Adds the scope and the problems of every route to the OpenAPI document.
//!
//! Documentation only; routes describe their other responses themselves.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::response::Response;
use utoipa::openapi::schema::{AllOfBuilder, ObjectBuilder, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, ResponseBuilder, Schema};

use super::codes::ProblemCode as Code;
use super::described_parameters::{complete_header, complete_parameter};
use super::described_schemas::complete_schemas;
use super::face_errors::TEXT;
use super::openai_errors;
use store::keys::Scope;

/// The security scheme of API keys.
pub(super) const API_KEY: &str = "api_key";

/// The extension of a description in which a handler lists its problems. The document lists them as
/// responses instead.
const PROBLEMS: &str = "x-problems";

/// The tag of the routes for OpenAI's clients. Their errors have another form, and ids in their
/// paths are opaque.
const OPENAI: &str = "openai";
/// The tags of the routes for pages. Their errors are texts.
const OF_PAGES: [&str; 3] = ["ai_sdk", "ag_ui", "langgraph"];

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
    Code::InvalidToken,
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
    Code::TokenKeysUnavailable,
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

/// Describes the scope that the callers of routes need. `None` is for routes without a key. A route
/// for any key describes that itself.
pub(super) fn with_scope(mut routes: OpenApi, scope: Option<Scope>) -> OpenApi {
    let needed = scope.map(|scope| SecurityRequirement::new(API_KEY, [scope.as_str()]));
    for operation in operations(&mut routes) {
        let own = operation.security.take();
        operation.security = own.or_else(|| Some(needed.iter().cloned().collect()));
    }
    routes
}

/// Completes the description of every route.
pub(super) fn complete(description: &mut OpenApi) {
    for operation in operations(description) {
        let is_open = operation.security.as_ref().is_some_and(Vec::is_empty);
        if !is_open && !has_tag(operation, OPENAI) && !is_of_page(operation) {
            operation.parameters.get_or_insert_default().push(pretty().into());
        }
        operation.parameters.iter_mut().flatten().for_each(complete_parameter);
        for response in operation.responses.responses.values_mut() {
            if let RefOr::T(response) = response {
                let headers = response.headers.iter_mut();
                headers.for_each(|(name, header)| complete_header(name, header));
            }
        }
        describe_problems(operation, is_open);
    }
    if let Some(components) = &mut description.components {
        complete_schemas(&mut components.schemas);
    }
}

fn operations(description: &mut OpenApi) -> impl Iterator<Item = &mut Operation> {
    let items = description.paths.paths.values_mut();
    items.flat_map(|item| {
        [
            &mut item.get,
            &mut item.put,
            &mut item.post,
            &mut item.patch,
            &mut item.delete,
        ]
        .into_iter()
        .flatten()
    })
}

/// Takes the codes that the handler of a route lists: codes that not all routes share.
fn take_listed(operation: &mut Operation) -> Vec<Code> {
    let listed = operation.extensions.take();
    listed
        .and_then(|listed| listed.get(PROBLEMS).map(codes_in))
        .unwrap_or_default()
}

/// Returns the codes of a list, or of lists in it.
fn codes_in(listed: &Value) -> Vec<Code> {
    match listed {
        Value::Array(lists) => lists.iter().flat_map(codes_in).collect(),
        code => code.as_str().and_then(Code::find).into_iter().collect(),
    }
}

fn codes_of(operation: &mut Operation, is_open: bool) -> BTreeSet<&'static str> {
    let mut codes = take_listed(operation);
    codes.extend(ALWAYS);
    let is_of_openai = has_tag(operation, OPENAI);
    let id = operation.operation_id.as_deref().unwrap_or_default();
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
    if ![
        "create_run",
        "answer_run",
        "create_response",
        "create_completion",
        "create_chat_message",
        "run_ag_ui",
        "stream_langgraph_run",
        "stream_stateless_run",
        "wait_for_langgraph_run",
        "wait_for_stateless_run",
        "create_langgraph_run",
        "create_stateless_run",
    ]
    .contains(&id)
    {
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
            (ParameterIn::Path, name) if name != "name" && !is_of_openai => codes.push(Code::MalformedId),
            _ => (),
        }
    }
    codes.into_iter().map(Code::as_str).collect()
}

/// Adds a response for each status of a problem.
fn describe_problems(operation: &mut Operation, is_open: bool) {
    let is_of_openai = has_tag(operation, OPENAI);
    let is_of_page = is_of_page(operation);
    let codes = codes_of(operation, is_open);
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in codes.into_iter().filter_map(Code::find) {
        let status = if is_of_openai {
            openai_errors::status_of(code)
        } else {
            code.status()
        };
        by_status.entry(status.as_u16()).or_default().push(code);
    }
    let responses = &mut operation.responses.responses;
    for (status, codes) in by_status {
        let content = if is_of_openai {
            ("application/json", RefOr::from(Ref::from_schema_name("OpenAiError")))
        } else if is_of_page {
            (
                TEXT,
                RefOr::from(Schema::from(ObjectBuilder::new().schema_type(Type::String))),
            )
        } else {
            ("application/problem+json", problem_schema(&codes))
        };
        responses.insert(status.to_string(), problem(status, &codes, content).into());
    }
}

fn is_of_page(operation: &Operation) -> bool {
    OF_PAGES.iter().any(|tag| has_tag(operation, tag))
}

fn has_tag(operation: &Operation, tag: &str) -> bool {
    operation.tags.iter().flatten().any(|own| own == tag)
}

fn pretty() -> Parameter {
    ParameterBuilder::new()
        .name("pretty")
        .parameter_in(ParameterIn::Query)
        .description(Some("Answers with JSON that has line breaks; by default false"))
        .schema(Some(ObjectBuilder::new().schema_type(Type::Boolean)))
        .build()
}

/// Returns the schema of problems with these codes.
fn problem_schema(codes: &[Code]) -> RefOr<Schema> {
    let names = codes.iter().map(|code| code.as_str());
    let code = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names));
    AllOfBuilder::new()
        .item(Ref::from_schema_name("Problem"))
        .item(ObjectBuilder::new().property("code", code))
        .into()
}

fn problem(status: u16, codes: &[Code], (media_type, schema): (&str, RefOr<Schema>)) -> Response {
    let lines: Vec<String> = codes
        .iter()
        .map(|code| format!("- `{}`: {}", code.as_str(), code.title()))
        .collect();
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let mut response = ResponseBuilder::new()
        .description(lines.join("\n"))
        .content(media_type, content);
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
