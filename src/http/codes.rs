//! The table of public error codes: code, status, title and page. Codes are part of the API and
//! never change their meaning.

use axum::http::StatusCode;

macro_rules! codes {
    ($($variant:ident = $code:literal, $status:ident, $title:literal;)+) => {
        /// Names a problem that a caller can meet.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ProblemCode {
            $(#[doc = $title] $variant,)+
        }

        impl ProblemCode {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the stable code.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// Returns the status of the response.
            pub fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)+ }
            }

            /// Returns the title, which is the same for every occurrence.
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }

            /// Returns the page that explains the code, in Markdown.
            pub fn page(self) -> &'static str {
                match self { $(Self::$variant => include_str!(concat!("../../docs/problems/", $code, ".md")),)+ }
            }
        }
    };
}

codes! {
    MalformedRequest = "malformed_request", BAD_REQUEST, "The request is not valid HTTP/1.1";
    MalformedJson = "malformed_json", BAD_REQUEST, "The body is not valid JSON";
    MalformedBody = "malformed_body", BAD_REQUEST, "The body can't be read";
    EmptyBody = "empty_body", BAD_REQUEST, "The body is empty";
    InvalidUtf8 = "invalid_utf8", BAD_REQUEST, "The request is not valid UTF-8";
    NulCharacter = "nul_character", BAD_REQUEST, "The request contains a NUL character";
    JsonTooDeep = "json_too_deep", BAD_REQUEST, "The JSON is nested too deeply";
    DuplicateKey = "duplicate_key", BAD_REQUEST, "A JSON object has the same key twice";
    UnknownField = "unknown_field", BAD_REQUEST, "The body has an unknown field";
    MissingField = "missing_field", BAD_REQUEST, "A required field is missing";
    InvalidField = "invalid_field", BAD_REQUEST, "A field has an invalid value";
    TooManyMessages = "too_many_messages", BAD_REQUEST, "The input has too many messages";
    UnknownParameter = "unknown_parameter", BAD_REQUEST, "The query has an unknown parameter";
    InvalidParameter = "invalid_parameter", BAD_REQUEST, "A query parameter has an invalid value";
    InvalidHeader = "invalid_header", BAD_REQUEST, "A header has an invalid value";
    InvalidCursor = "invalid_cursor", BAD_REQUEST, "The cursor is not one that this list gave";
    MalformedId = "malformed_id", BAD_REQUEST, "An id is malformed";
    InvalidPath = "invalid_path", BAD_REQUEST, "The path of a file is invalid";
    MissingApiKey = "missing_api_key", UNAUTHORIZED, "The request has no API key";
    InvalidApiKey = "invalid_api_key", UNAUTHORIZED, "The API key is not valid";
    MissingScope = "missing_scope", FORBIDDEN, "The API key does not allow this";
    NotAllowed = "not_allowed", FORBIDDEN, "The caller may not use the agent or the model";
    AboveCeiling = "above_ceiling", FORBIDDEN, "The budget is above a ceiling";
    HostNotAllowed = "host_not_allowed", FORBIDDEN, "The service has no key and does not answer to this host name";
    OriginNotAllowed = "origin_not_allowed", FORBIDDEN, "The service has no key and does not answer to other web pages";
    ProxiedWithoutKey = "proxied_without_key", FORBIDDEN, "The service has no key and is behind a proxy";
    RouteNotFound = "route_not_found", NOT_FOUND, "There is nothing at this address";
    RunNotFound = "run_not_found", NOT_FOUND, "There is no such run";
    SessionNotFound = "session_not_found", NOT_FOUND, "There is no such session";
    SessionNotCommitted = "session_not_committed", NOT_FOUND, "The session is reserved and not committed";
    AgentNotFound = "agent_not_found", NOT_FOUND, "There is no such agent";
    ThreadNotFound = "thread_not_found", NOT_FOUND, "There is no such thread";
    DeliveryNotFound = "delivery_not_found", NOT_FOUND, "There is no such delivery";
    FileNotFound = "file_not_found", NOT_FOUND, "There is no such file";
    NoCommonAncestor = "no_common_ancestor", NOT_FOUND, "The sessions have no common ancestor";
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "The method is not allowed here";
    RequestTimeout = "request_timeout", REQUEST_TIMEOUT, "The request arrived too slowly";
    BaseSessionConflict = "base_session_conflict", CONFLICT, "Another run continues the base session";
    AnswersRequired = "answers_required", CONFLICT, "The session waits for answers";
    SessionNotWaiting = "session_not_waiting", CONFLICT, "The session does not wait for answers";
    RunNotWaiting = "run_not_waiting", CONFLICT, "The run does not wait for answers";
    SessionHasDescendants = "session_has_descendants", CONFLICT, "Other sessions continue the session";
    SessionInUse = "session_in_use", CONFLICT, "The session is in use";
    ThreadBusy = "thread_busy", CONFLICT, "The thread has an active run";
    ThreadMoved = "thread_moved", CONFLICT, "The thread points elsewhere";
    TooManySteeringMessages = "too_many_steering_messages", CONFLICT, "The run takes no more messages";
    AgentFilesInvalid = "agent_files_invalid", CONFLICT, "The files of agents can't be used";
    AgentIsConfigured = "agent_is_configured", CONFLICT, "The agent is built in or defined in a configuration file";
    MergeConflict = "merge_conflict", CONFLICT, "Both sessions changed the same";
    BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE, "The body is too large";
    JsonTooLarge = "json_too_large", PAYLOAD_TOO_LARGE, "The JSON has too many values";
    UriTooLong = "uri_too_long", URI_TOO_LONG, "The address is too long";
    UnsupportedMediaType = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "The body is not JSON";
    RangeNotSatisfiable = "range_not_satisfiable", RANGE_NOT_SATISFIABLE, "The file does not have these bytes";
    UnknownModel = "unknown_model", UNPROCESSABLE_ENTITY, "There is no such model";
    ModelNotConfigured = "model_not_configured", UNPROCESSABLE_ENTITY, "The model's provider has no API key";
    UnknownTool = "unknown_tool", UNPROCESSABLE_ENTITY, "There is no such tool";
    UnknownHook = "unknown_hook", UNPROCESSABLE_ENTITY, "There is no such hook";
    InvalidHook = "invalid_hook", UNPROCESSABLE_ENTITY, "The configuration of a hook is wrong";
    InvalidPrompt = "invalid_prompt", UNPROCESSABLE_ENTITY, "The system prompt can't be rendered";
    InvalidResponseFormat = "invalid_response_format", UNPROCESSABLE_ENTITY, "The response format can't be used";
    InvalidHistory = "invalid_history", UNPROCESSABLE_ENTITY, "No model accepts these messages";
    InvalidAnswers = "invalid_answers", UNPROCESSABLE_ENTITY, "The answers do not fit the open calls";
    SessionTooLarge = "session_too_large", UNPROCESSABLE_ENTITY, "The session would be too large";
    WorkspaceTooLarge = "workspace_too_large", UNPROCESSABLE_ENTITY, "The files are too large or too many";
    StorageQuotaExceeded = "storage_quota_exceeded", UNPROCESSABLE_ENTITY, "The tenant may not store more files";
    UnknownBlob = "unknown_blob", UNPROCESSABLE_ENTITY, "There is no such blob";
    HashMismatch = "hash_mismatch", UNPROCESSABLE_ENTITY, "The body has another hash";
    IdempotencyKeyReused = "idempotency_key_reused", UNPROCESSABLE_ENTITY, "The idempotency key belongs to another request";
    QueueFull = "queue_full", TOO_MANY_REQUESTS, "The queue is full";
    TooManyUnknownKeys = "too_many_unknown_keys", TOO_MANY_REQUESTS, "Too many unknown API keys were sent";
    TooManyRuns = "too_many_runs", TOO_MANY_REQUESTS, "Too many runs are active";
    TooManyReaders = "too_many_readers", TOO_MANY_REQUESTS, "Too many readers follow runs";
    RateLimited = "rate_limited", TOO_MANY_REQUESTS, "The tenant makes too many requests";
    HeadersTooLarge = "headers_too_large", REQUEST_HEADER_FIELDS_TOO_LARGE, "The headers are too large";
    InternalError = "internal_error", INTERNAL_SERVER_ERROR, "The service failed";
    UnsupportedTransferEncoding = "unsupported_transfer_encoding", NOT_IMPLEMENTED, "The transfer coding is not supported";
    TooManyConnections = "too_many_connections", SERVICE_UNAVAILABLE, "Too many connections are open";
    StoreUnavailable = "store_unavailable", SERVICE_UNAVAILABLE, "The store is unavailable";
    NotReady = "not_ready", SERVICE_UNAVAILABLE, "A part of the service is down";
    RunUnreachable = "run_unreachable", SERVICE_UNAVAILABLE, "The process of the run can't be reached";
    ShuttingDown = "shutting_down", SERVICE_UNAVAILABLE, "The service is shutting down";
    TooMuchInFlight = "too_much_in_flight", SERVICE_UNAVAILABLE, "Too many responses wait to be read";
    AnswerTimeout = "answer_timeout", SERVICE_UNAVAILABLE, "The answer took too long";
}

impl ProblemCode {
    /// Finds a code by its text.
    pub fn find(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.as_str() == code)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_unique_and_their_pages_describe_them() {
        let codes: BTreeSet<_> = ProblemCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(codes.len(), ProblemCode::ALL.len());
        for code in ProblemCode::ALL {
            let heading = format!("# {}\n", code.as_str());
            let status = format!("Status {}: {}.", code.status().as_u16(), code.title());
            assert!(code.page().starts_with(&heading), "{code:?}");
            assert!(code.page().contains(&status), "{code:?}: {status}");
            assert!(code.page().contains("\n## What to do\n"), "{code:?}");
        }
    }

    #[test]
    fn every_page_has_its_code() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/problems");
        let pages = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let orphans: Vec<_> = pages
            .filter(|name| name != "README.md" && name != "run-errors.md")
            .filter(|name| ProblemCode::find(name.trim_end_matches(".md")).is_none())
            .collect();
        assert_eq!(orphans, Vec::<String>::new());
    }
}
