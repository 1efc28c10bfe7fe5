//! The table of public error codes: code, status, title, cause and remedy. `docs/problems.md` is
//! generated from it. Codes are part of the API and never change their meaning.

use axum::http::StatusCode;
use serde::Serialize;

macro_rules! codes {
    ($($variant:ident = $code:literal, $status:ident, $title:literal, $cause:literal, $remedy:literal;)+) => {
        /// Names a problem that a caller can meet.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        pub enum ProblemCode {
            $(#[doc = $title] #[serde(rename = $code)] $variant,)+
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

            /// Returns the meaning, in Markdown.
            pub fn cause(self) -> &'static str {
                match self { $(Self::$variant => $cause,)+ }
            }

            /// Returns advice for the caller, in Markdown.
            pub fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)+ }
            }
        }
    };
}

codes! {
    MalformedRequest = "malformed_request", BAD_REQUEST, "The request is not valid HTTP/1.1",
        "The service can't read the request, or servers and proxies could read it in two ways. Examples are an \
         unencoded `<` in the address, a header with a line break, two lengths, or a `Host` that is missing, \
         repeated or no host. The service closes the connection. If it could not read the request at all, `instance` \
         is `/`, and the log has the route `unread`.",
        "Send HTTP/1.1 with an HTTP library, and percent-encode parameters, as `curl -G --data-urlencode` does. The \
         service supports TLS and HTTP/2 only with `[http.tls]`, and then no plain HTTP.";
    MalformedJson = "malformed_json", BAD_REQUEST, "The body is not valid JSON",
        "The body is not JSON. `detail` names the line and the column at which the parser stopped. A number that no \
         64-bit float can hold, for example `1e999`, is malformed, too.",
        "Encode the body with a JSON library instead of joining strings.";
    MalformedBody = "malformed_body", BAD_REQUEST, "The body can't be read",
        "The body ended before its announced length, or its transfer encoding is broken. Nothing was started.",
        "Send the whole body, with the right `Content-Length` or a correct chunked encoding. If there is a proxy, \
         check that it did not cut the body.";
    EmptyBody = "empty_body", BAD_REQUEST, "The body is empty",
        "The route needs a JSON body, and the request has none.",
        "Send a body. The description of the route in `/openapi.json` shows its form.";
    InvalidUtf8 = "invalid_utf8", BAD_REQUEST, "The request is not valid UTF-8",
        "The body is not valid UTF-8, or the path is not after its percent escapes are decoded.",
        "Encode the request in UTF-8.";
    NulCharacter = "nul_character", BAD_REQUEST, "The request contains a NUL character",
        "A string contains the character U+0000, in JSON often written `\\u0000`. Not every store can hold it, so \
         the service always rejects it. `errors` points to the string.",
        "Remove the character. It often comes from binary data that was read as text. Send binary data as base64 in \
         an image or a document.";
    JsonTooDeep = "json_too_deep", BAD_REQUEST, "The JSON is nested too deeply",
        "Objects and arrays of the body are nested deeper than `http.max_json_depth`.",
        "Flatten the value, or send it as a string.";
    DuplicateKey = "duplicate_key", BAD_REQUEST, "A JSON object has the same key twice",
        "An object of the body has the same key twice. Parsers disagree on which value counts, so the service takes \
         neither. `errors` points to the key.",
        "Send each key once.";
    UnknownField = "unknown_field", BAD_REQUEST, "The body has an unknown field",
        "The body has a field that the route does not know. Most often the name is misspelled. `errors` points to \
         the field, and the message lists the known fields.",
        "Correct or remove the field. Put data of your own into `metadata` or `variables`.";
    MissingField = "missing_field", BAD_REQUEST, "A required field is missing",
        "The body lacks a field that the route needs. `errors` points to the missing field.",
        "Add the field.";
    InvalidField = "invalid_field", BAD_REQUEST, "A field has an invalid value",
        "A field has the wrong type, is out of range, or has a value that is not allowed. `errors` points to it.",
        "Correct the value. `/openapi.json` describes the type of each field.";
    InvalidType = "invalid_type", BAD_REQUEST, "A parameter has the wrong JSON type",
        "A field in a request of a client of OpenAI has another JSON type than it needs. `param` names the field. \
         Other requests get `invalid_field`.",
        "Correct the type, which the message names.";
    UnsupportedParameter = "unsupported_parameter", BAD_REQUEST, "The service does not support the parameter",
        "A request of a client of OpenAI asks for something that agents do not do, for example a hosted tool. \
         `param` names the field. The service refuses the request, since the client would get another response than \
         it asks for.",
        "Leave the field out. [What is refused](openai.md) lists these fields, with the reasons.";
    PreviousResponseNotFound = "previous_response_not_found", BAD_REQUEST, "The previous response can't be continued",
        "`previous_response_id` names a response that does not exist, that was made with `store: false`, or that has \
         not ended with `completed` or `incomplete`.",
        "Name a response that has ended and that is stored. Or leave the field out, and send the whole conversation \
         as `input`.";
    TooManyMessages = "too_many_messages", BAD_REQUEST, "The input has too many messages",
        "The input of a run has more messages than `http.max_input_messages`, or the history of a session to import \
         has more than 20000.",
        "Import a long conversation with `POST /v1/sessions`, and continue the imported session. Leave out the \
         oldest messages if there are more than 20000.";
    UnknownParameter = "unknown_parameter", BAD_REQUEST, "The query has an unknown parameter",
        "The query has a parameter that the route does not know. `errors` names it.",
        "Correct or remove the parameter.";
    InvalidParameter = "invalid_parameter", BAD_REQUEST, "A query parameter has an invalid value",
        "A parameter of the query has a value that can't be used, or the query has the parameter twice. `errors` \
         names it.",
        "Correct the value.";
    InvalidHeader = "invalid_header", BAD_REQUEST, "A header has an invalid value",
        "A header has a value that can't be used, or the request has the header twice. `errors` names it.",
        "Correct the header, or leave it out.";
    InvalidCursor = "invalid_cursor", BAD_REQUEST, "The cursor is not one that this list gave",
        "This list did not give the cursor. Cursors are opaque, and the cursor of one list can't be used in another.",
        "Send the `next_cursor` of the page before, unchanged. Or start again without a cursor.";
    MalformedId = "malformed_id", BAD_REQUEST, "An id is malformed",
        "An id in the path, the query or the body is not a UUID in its hyphenated form. `errors` names the parameter \
         or points to the field.",
        "Send the id as the service gave it.";
    InvalidPath = "invalid_path", BAD_REQUEST, "The path of a file is invalid",
        "The address names a file by a path that no file can have. A path is relative, with `/` between its names. \
         No name is empty, `.` or `..`. A path has at most 1,024 bytes and 64 levels, and a name at most 255 bytes.",
        "Correct the path. Encode the characters of a name that have a meaning in an address, for example `%` as \
         `%25`. Leave the `/` between names as it is.";
    MissingApiKey = "missing_api_key", UNAUTHORIZED, "The request has no API key",
        "The service has API keys, so every request under `/v1` needs one. This request has none, or the session of \
         the [console](console.md) that it names has ended.",
        "Send `Authorization: Bearer ark_...`. An operator creates keys with `agent-runtime keys create`. In the \
         console, log in again.";
    InvalidApiKey = "invalid_api_key", UNAUTHORIZED, "The API key is not valid",
        "The API key is unknown or was revoked, or the header `Authorization` is not `Bearer ark_...`. A service \
         without any key rejects every request that has this header, except on the [routes for OpenAI's \
         clients](openai.md). A revoked key may work for a few seconds more.",
        "Check that you copied the whole key, and that it belongs to this service. Ask the operator for a new one. \
         If the service has no keys, leave the header out.";
    InvalidToken = "invalid_token", UNAUTHORIZED, "The token is not valid",
        "The header `Authorization` has a token of an identity provider that the service does not accept, and \
         `detail` says why. It has expired or was revoked, its signature is wrong, or a [claim](tokens.md#claims) is \
         missing or has another value than the configuration requires.",
        "Get a new token. If it is refused as well, compare its claims with the [rules](tokens.md#claims).";
    SpendLimitReached = "spend_limit_reached", PAYMENT_REQUIRED, "A limit of spending is reached",
        "The tenant, the agent or the API key may spend only so much in a day or a month, and too little of it is \
         left. `detail` names the limit, and `resets_at` says when the next day or month begins. Runs in progress have \
         reserved a part of the limit, so some may be left again when they end. A run in progress that reaches the \
         limit ends as `stopped`.",
        "Wait until `resets_at`, or ask the operator for a higher limit. `GET /v1/spend` shows what is spent, \
         reserved and left. See [Spending](spending.md).";
    MissingScope = "missing_scope", FORBIDDEN, "The API key does not allow this",
        "The API key, the token or the client certificate is valid, but lacks the scope that the route needs.",
        "Use a key with the scope. The [table of routes](api.md#routes) has the scope of each route.";
    NotAllowed = "not_allowed", FORBIDDEN, "The caller may not use the agent or the model",
        "The [limits](configuration.md#limits) of the tenant or of the API key do not allow an agent or a model. The \
         request names it, or the session that the request continues, or the agent, one of its subagents or one of \
         its hooks. Under a ceiling of cost, no model without a [price](configuration.md#prices) is allowed. Nothing \
         was written.",
        "Name another agent or model. Or ask the operator to allow this one, or to give the model a price.";
    AboveCeiling = "above_ceiling", FORBIDDEN, "The budget is above a ceiling",
        "The `budget` of the request asks for more steps, tokens, seconds or money than a run may have. The \
         [limits](configuration.md#limits) of the tenant or of the API key set the ceiling. Nothing was written.",
        "Ask for no more than the ceiling, or leave the limit out. Without it, the run has the limit of its agent, \
         up to the ceiling.";
    HostNotAllowed = "host_not_allowed", FORBIDDEN, "The service has no key and does not answer to this host name",
        "There is no API key. So the service responds only to requests for loopback names and for the names in \
         `http.allowed_hosts`. Otherwise a web page could direct its own name to this machine (DNS rebinding) and \
         read every session.",
        "Create a key with `agent-runtime keys create` and send it: then every name is allowed. Or add the name to \
         [`http.allowed_hosts`](configuration.md#http); see [without keys](operations.md#without-keys).";
    OriginNotAllowed = "origin_not_allowed", FORBIDDEN, "The service does not answer to this web page",
        "There is no API key, or the request is for `/mcp`, and the header `Origin` shows that it comes from a web \
         page that this service has not served and that `http.allowed_origins` does not name. Any page that is open \
         in a browser on this machine can send requests like this. Or the request logs in to the \
         [console](console.md#security) or has its cookie, and is not from a page of the console, is a write without \
         `X-Console: 1`, or is a login over plain HTTP beyond this machine.",
        "Call the service from a server of yours, or [allow the page](operations.md#web-pages-of-other-origins). Open \
         the console over HTTPS, or on the machine of the service.";
    ProxiedWithoutKey = "proxied_without_key", FORBIDDEN, "The service has no key and is behind a proxy",
        "There is no API key, and a header shows that a proxy forwarded the request, for example `X-Forwarded-For`, \
         `Forwarded` or `X-Real-IP`. So other machines can reach a service that does not authenticate anybody.",
        "Create a key with `agent-runtime keys create`. Or, if the proxy authenticates callers, set \
         `http.insecure_no_auth`, and add the public host to `http.allowed_hosts`; see [without \
         keys](operations.md#without-keys).";
    RouteNotFound = "route_not_found", NOT_FOUND, "There is nothing at this address",
        "No route has this path.",
        "Compare the path with `/openapi.json`. Paths have no slash at their end.";
    RunNotFound = "run_not_found", NOT_FOUND, "There is no such run",
        "No run of your tenant has this id. A run of another tenant gets the same response.",
        "Check the id and the API key. If the id is that of a session, `detail` names the run that published it. If \
         a run ended while the store was not available, its record is written a little later.";
    SessionNotFound = "session_not_found", NOT_FOUND, "There is no such session",
        "No session of your tenant has this id, and no run has reserved it. A session of another tenant gets the \
         same response.",
        "Check the id and the API key. If the id is that of a run, `detail` names the session of the run.";
    SessionNotCommitted = "session_not_committed", NOT_FOUND, "The session is reserved and not committed",
        "The run in `run_id` has reserved this session id and has not published the session. If `run_status` is \
         `failed` or `cancelled`, the session will never exist. If it is `completed` or `stopped`, the session was \
         committed during your request.",
        "While the run works, wait for its end, for example with `GET /v1/runs/{run_id}?wait=60`. After `completed` \
         or `stopped`, read the session again. After `failed` or `cancelled`, read the `error` of the run. You can \
         start a new run from its `base_session_id`.";
    AgentNotFound = "agent_not_found", NOT_FOUND, "There is no such agent",
        "No agent has this name, neither in the configuration nor in the store. If another agent names it as a \
         subagent, `detail` has the name of that agent. If you may use an agent with a similar name, `detail` \
         suggests that one.",
        "Check the name. `GET /v1/agents` lists all agents.";
    ThreadNotFound = "thread_not_found", NOT_FOUND, "There is no such thread",
        "No thread of your tenant has this name. A thread of another tenant gets the same response.",
        "Check the name and the API key. A run with `thread` creates a thread that does not exist. So do `POST \
         /v1/threads` and `PUT`.";
    DeliveryNotFound = "delivery_not_found", NOT_FOUND, "There is no such delivery",
        "No message to a [webhook](webhooks.md) of your tenant has this id. A message of another tenant gets the \
         same response.",
        "Check the id and the API key. The id is the `webhook-id` of the message. `GET \
         /v1/webhooks/deliveries?run_id=…` lists the messages of a run.";
    FileNotFound = "file_not_found", NOT_FOUND, "There is no such file",
        "The session exists, but nothing is at the path. Or something else is there: a directory where the request \
         needs a file, or a file where it needs a directory. A symlink that leads to nothing counts as nothing.",
        "List the files with `GET /v1/sessions/{session_id}/files`. A directory is listed with `?path=`.";
    NoCommonAncestor = "no_common_ancestor", NOT_FOUND, "The sessions have no common ancestor",
        "The request compares two sessions by their common ancestor, and there is none: the sessions belong to \
         different lines. For a merge, the ancestor must also be stored. An ancestor that was removed has no files \
         any more.",
        "Choose two sessions that were forked from the same session. `GET /v1/sessions/{session_id}/lineage` shows \
         the ancestors of a session. To take over all files of another session, name it as `environment_from` in a \
         run.";
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "The method is not allowed here",
        "The path exists and does not have this method. `detail` and the header `Allow` name the methods that it \
         has.",
        "Use another method. Sessions and runs can't be changed. To remove a session, use `DELETE \
         /v1/sessions/{session_id}`.";
    RequestTimeout = "request_timeout", REQUEST_TIMEOUT, "The request arrived too slowly",
        "The body did not arrive within `http.request_timeout`. The service closes the connection.",
        "Send the request again over a better connection, or send a smaller body.";
    BaseSessionConflict = "base_session_conflict", CONFLICT, "Another run continues the base session",
        "The request has `\"conflict\": \"reject\"`, and another run continues the same base session or has \
         continued it. `run_id` names that run. It is absent if an imported session continues the base.",
        "Read the other run and continue from its session, or fork with `\"conflict\": \"fork\"`.";
    AnswersRequired = "answers_required", CONFLICT, "The session waits for answers",
        "The base session of the run has open calls: calls of client tools, or calls that need an approval. The \
         request has no `answers`. `session_id` names the session, and `required_action` has its [open \
         calls](approvals.md#open-calls). Nothing was started.",
        "Fill in `required_action.answers` and send them as `answers`, or send `\"deny_open\": true` to deny the \
         open calls. See [answering](approvals.md#answering).";
    SessionNotWaiting = "session_not_waiting", CONFLICT, "The session does not wait for answers",
        "The request has `answers`, or `deny_open` without `input`, and its base session has no open calls: they \
         have been answered, or there were none. Or the request answers a run, and the thread of the run points to \
         another session now. `session_id` names the base session; it is absent if the request continues nothing.",
        "Leave `answers` out, and send an `input`. To answer the calls of an earlier session again, as another \
         branch, name it in `base_session_id` and send `\"conflict\": \"fork\"`. On a thread, read the thread first: \
         another request may have answered.";
    RunNotWaiting = "run_not_waiting", CONFLICT, "The run does not wait for answers",
        "The answered run has another status than `waiting`, which `run_status` shows. Or another run has answered \
         its calls already: `run_id` names that run, and `run_status` is absent. Nothing was started, and no \
         approved call is executed again.",
        "If the run is not over, wait for its end. If it has completed, continue its session with a message. If \
         another run has answered, read that run. To answer the calls once more in a \
         [branch](approvals.md#one-answer), send `\"conflict\": \"fork\"`.";
    SessionHasDescendants = "session_has_descendants", CONFLICT, "Other sessions continue the session",
        "A request to remove a session names one that other sessions continue. They continue it directly, through a \
         session that was removed before, or through the session of one of its subagents. Nothing was removed.",
        "First remove the sessions that continue it. Or remove all of them together with `?descendants=true`.";
    SessionInUse = "session_in_use", CONFLICT, "The session is in use",
        "A request to remove a session names one that is in use: a thread points to it, a run that waits or is in \
         progress starts from it, or a session that continues it is being published. The same holds for the sessions \
         that would be removed with it: those of subagents and, with `?descendants=true`, those that continue it. \
         `run_id` names the run if it is known.",
        "Move the thread or delete it. Wait for the run, or cancel it. Then try again.";
    ThreadBusy = "thread_busy", CONFLICT, "The thread has an active run",
        "`run_id` names a run that waits or is in progress on the thread. A run was to start on the thread, and its \
         `if_busy` is `reject`, the default. Or the thread was to be moved or deleted, or its files or messages were \
         to be changed, which its active run does not allow. Nothing was written.",
        "Wait for the run, or cancel it. A new run can also [wait for the others, interrupt them or \
         fork](threads.md#busy-threads) by its `if_busy`. For files that shall be part of the conversation, see \
         [files that arrive during a run](threads.md#files-that-arrive-during-a-run).";
    ThreadExists = "thread_exists", CONFLICT, "There is a thread with this name already",
        "`POST /v1/threads` creates a thread with the given `name`, and your tenant has one. It was not changed. A \
         request that you repeat without an `Idempotency-Key` gets this response, too.",
        "Read the thread. To change it, use `PATCH`, and to move it, `PUT`. Or choose another name.";
    ThreadMoved = "thread_moved", CONFLICT, "The thread points elsewhere",
        "Your request should move a thread from `expected_session_id`, or create it with `If-None-Match: *`, but a \
         run or another request was faster. The thread does not change. `session_id` is the session that the thread \
         points to now. This field is absent if the thread points to no session or does not exist. A change of the \
         thread's files or messages gets this response if other requests moved the thread at each of 16 attempts.",
        "Read the thread and decide again. To move it, send the session that it points to as `expected_session_id`.";
    TooManySteeringMessages = "too_many_steering_messages", CONFLICT, "The run takes no more messages",
        "A run takes at most 1,000 messages by `steer`, with at most 16,777,216 bytes as JSON in all. Messages in \
         any status count. The message was not added. `run_id` names the run.",
        "Let the run end and send the rest in a run that continues its session. Or stop the run first.";
    AgentFilesInvalid = "agent_files_invalid", CONFLICT, "The files of agents can't be used",
        "A reload found an error in the files of agents, or their directory was empty or missing. The reload changed \
         nothing: all agents are as they were before.",
        "Correct the file that `detail` names, or restore the directory, and reload again. `agent-runtime \
         check-config` shows all errors at once. To remove all agents from files, put any other file into the \
         directory, for example `.none`.";
    AgentIsConfigured = "agent_is_configured", CONFLICT, "The agent is built in or defined in a configuration file",
        "The agent is built in, as `demo` is, or a configuration file defines it. So a request can't delete it.",
        "Remove the file and [reload the agents](configuration.md#agents). You can't remove a built-in agent. To \
         replace it, define an agent with its name in a file or with `PUT`.";
    MergeConflict = "merge_conflict", CONFLICT, "Both sessions changed the same",
        "Both sessions changed the same file, variable or resource since their common ancestor, in ways that can't \
         be combined. Nothing was written. `conflicts` lists up to 1,000 of them.",
        "Decide each conflict yourself. Write the files that you want into one of the sessions with `POST \
         /v1/sessions/{session_id}/files`, for example the version of the other session, which you can name as a \
         blob. Or continue with the files of one session only.";
    BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE, "The body is too large",
        "The body is larger than `http.max_body_bytes`. The service does not read the rest and closes the \
         connection.",
        "Send less. Send documents and images by their URL, and continue a session instead of sending a long \
         conversation. An operator can raise the limit.";
    JsonTooLarge = "json_too_large", PAYLOAD_TOO_LARGE, "The JSON has too many values",
        "The body has more JSON values than `http.max_json_values`. Each object, array, string, number, `true`, \
         `false` and `null` counts, including nested ones. Keys don't count. A value takes far more memory than its \
         text, so there is this limit besides the limit on bytes.",
        "Send data that only tools or prompts read as one string, or send less. An operator can raise the limit.";
    UriTooLong = "uri_too_long", URI_TOO_LONG, "The address is too long",
        "Path and query together are longer than 8 KiB. If they are far longer, the service rejects them without a \
         problem document.",
        "Shorten the query.";
    UnsupportedMediaType = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "The body is not JSON",
        "The `Content-Type` of the body is not JSON in UTF-8, or the body is compressed.",
        "Send `Content-Type: application/json` and no `Content-Encoding`.";
    RangeNotSatisfiable = "range_not_satisfiable", RANGE_NOT_SATISFIABLE, "The file does not have these bytes",
        "The header `Range` asks for bytes after the end of the file. The header `Content-Range` of the response has \
         the size of the file.",
        "Ask for bytes that the file has, or leave the header out.";
    UnknownModel = "unknown_model", UNPROCESSABLE_ENTITY, "There is no such model",
        "A model is named `PROVIDER/MODEL`. No provider of this name is configured, or the provider does not offer \
         the model.",
        "Check the name. Providers are in the section `[providers]` of the configuration.";
    ModelNotConfigured = "model_not_configured", UNPROCESSABLE_ENTITY, "The model's provider has no API key",
        "The provider of the model is configured, but the service has no API key for it.",
        "Set the variable that `detail` names in the environment of the service, and restart the service. Or ask the \
         operator to do so.";
    UnknownTool = "unknown_tool", UNPROCESSABLE_ENTITY, "There is no such tool",
        "The agent names a tool that does not exist.",
        "Correct the name.";
    UnknownHook = "unknown_hook", UNPROCESSABLE_ENTITY, "There is no such hook",
        "The agent names a hook that does not exist.",
        "Correct the name. [Hooks](hooks.md) has all of them.";
    InvalidHook = "invalid_hook", UNPROCESSABLE_ENTITY, "The configuration of a hook is wrong",
        "The agent attaches a hook with a configuration that the hook can't use: an unknown field, a value out of \
         range, or an invalid pattern.",
        "Correct what the message names. [Hooks](hooks.md) describes each configuration.";
    InvalidPrompt = "invalid_prompt", UNPROCESSABLE_ENTITY, "The system prompt can't be rendered",
        "The system prompt of an agent, of a run or of an imported session is a \
         [template](api.md#variables-and-prompts) that no run could render. It is malformed, or uses syntax that a \
         prompt does not have, or exceeds a limit. Or it reads a name that nothing can set, for example `{{ nope \
         }}`. A variable that has no value yet is not this problem: it fails the run with `prompt_not_rendered`.",
        "Correct the template. Its [whole syntax](api.md#variables-and-prompts) is short.";
    InvalidResponseFormat = "invalid_response_format", UNPROCESSABLE_ENTITY, "The response format can't be used",
        "The service can't use the `response_format` of the agent, of the request or of the session. Its name or its \
         schema breaks one of the [rules for schemas](agents.md#schemas-of-outputs).",
        "Correct the schema. If it exceeds a limit, see [smaller schemas](agents.md#schemas-of-outputs).";
    InvalidHistory = "invalid_history", UNPROCESSABLE_ENTITY, "No model accepts these messages",
        "No model accepts the messages. A tool call has no result, or several; a result belongs to no call, is not \
         right after the call's message, or has another `section` or `is_trace` tag. Or a message is empty, a call \
         or a result is in a message of the wrong role or lacks its id or tool name, or a summary has a range in \
         `covers` that is not allowed.",
        "Send exactly one result for each tool call, in tool messages right after it, with the same tags. Leave \
         empty messages out. End `covers` before the summary itself, and not between a tool call and its result. \
         Begin it at the end of the summary before, or at 0 for the first summary.";
    InvalidAnswers = "invalid_answers", UNPROCESSABLE_ENTITY, "The answers do not fit the open calls",
        "`answers` must answer every open call of the base session once. `errors` names all faults: a missing, \
         unknown or repeated call, another hash of the arguments, an answer of the wrong kind, a result or arguments \
         that do not fit the schema, or a call that has expired. Nothing was started.",
        "Correct the answers that `errors` names. `required_action` has the [calls that are open \
         now](approvals.md#open-calls). If the hash differs, the call has other arguments than the answer is about: \
         let the user decide again.";
    SessionTooLarge = "session_too_large", UNPROCESSABLE_ENTITY, "The session would be too large",
        "A part of the session would have more bytes of JSON than `store.max_session_bytes`. The parts are the \
         messages that the next run needs, the environment and the context. Each counts alone. Of a \
         [compacted](compaction.md) history, only the newest summary and the messages after it count. A run that \
         grows too large while it works fails with the same code. Nothing was stored.",
        "Continue an earlier session, or start a new conversation. Send large media by their URL. Attach a hook that \
         summarises long conversations to the agent. An operator can raise the limit.";
    WorkspaceTooLarge = "workspace_too_large", UNPROCESSABLE_ENTITY, "The files are too large or too many",
        "The session would have a file, or files together, above a limit: `workspace.max_file_bytes`, \
         `workspace.max_files` or `workspace.max_bytes`. Nothing was written.",
        "Leave files out, or delete others with the same request. An operator can raise the limits.";
    StorageQuotaExceeded = "storage_quota_exceeded", UNPROCESSABLE_ENTITY, "The tenant may not store more files",
        "The files of all sessions of the tenant would have more bytes than the limit \
         `limits.each_tenant.max_stored_file_bytes`. Each content counts once, however many sessions have it. No \
         session was changed.",
        "Delete sessions that you no longer need. Their files count until a [sweep](operations.md#files-of-a-tenant) \
         has removed them, a day after nothing refers to them. An operator can raise the limit.";
    UnknownBlob = "unknown_blob", UNPROCESSABLE_ENTITY, "There is no such blob",
        "A change names the contents of a file by their hash, and no contents with this hash are stored for the \
         tenant. They may have been stored once: contents that no session has are removed after a day, or what \
         `retention.unreferenced_contents` says.",
        "Upload the contents with `PUT /v1/blobs/{hash}`. Then repeat the request.";
    HashMismatch = "hash_mismatch", UNPROCESSABLE_ENTITY, "The body has another hash",
        "The address names a hash, and the body of the request has another one. The hash is the BLAKE3 of the bytes, \
         in lower-case hexadecimal digits, as `b3sum` prints it. Nothing was stored.",
        "Compute the hash of exactly the bytes that you send. A client that compresses the body or converts its line \
         breaks changes the hash.";
    IdempotencyKeyReused = "idempotency_key_reused", UNPROCESSABLE_ENTITY, "The idempotency key belongs to another request",
        "The `Idempotency-Key` was sent before with another method, path or body. Nothing was written. The service \
         retains keys for `idempotency.retention`. Keys of other tenants don't count.",
        "Send a new key with each new request. Send the same key only with the same request.";
    QueueFull = "queue_full", TOO_MANY_REQUESTS, "The queue is full",
        "The queue holds as many waiting runs as `queue.max_waiting` allows. Or it holds as many runs of the tenant \
         as `queued_runs` in its [limits](configuration.md#limits) allows. Nothing was written.",
        "Try again after `Retry-After`. An operator can raise the limit, or add workers.";
    TooManyUnknownKeys = "too_many_unknown_keys", TOO_MANY_REQUESTS, "Too many unknown API keys were sent",
        "This process got many unknown API keys in a short time. It reads at most 500 of them from the store at \
         once, and then 50 each second. Keys that it has found before are not affected.",
        "Try again after `Retry-After`. For operators: the lines with the code `invalid_api_key` in the log of the \
         proxy or the service show who sends wrong keys.";
    TooManyRuns = "too_many_runs", TOO_MANY_REQUESTS, "Too many runs are active",
        "This process has as many light runs in progress as `runs.max_concurrent` allows. Or the tenant has as many \
         as `light_runs` in its [limits](configuration.md#limits) allows.",
        "Try again after `Retry-After`.";
    TooManyReaders = "too_many_readers", TOO_MANY_REQUESTS, "Too many readers follow runs or changes",
        "The tenant has as many readers on one replica as `readers` in its [limits](configuration.md#limits) allows. \
         A reader is a request that follows the events of a run or the changes of the tenant, waits for a run with \
         `?wait=`, or repeats an earlier request and waits for its run.",
        "Try again after `Retry-After`. Close readers that you don't need, read the run without `wait`, or repeat \
         the request with `Prefer: respond-async`.";
    RateLimited = "rate_limited", TOO_MANY_REQUESTS, "The tenant makes too many requests",
        "The tenant of the API key has made more requests than its [limits](configuration.md#limits) allow: \
         `requests_per_second` with a `request_burst`. All keys of the tenant count together, and so do all replicas \
         that share a Redis. Nothing was written.",
        "The next request is allowed after `Retry-After`. To stay below the limit, read `RateLimit` and \
         `RateLimit-Policy` in each [response](api.md#limits).";
    HeadersTooLarge = "headers_too_large", REQUEST_HEADER_FIELDS_TOO_LARGE, "The headers are too large",
        "The request has more than 100 headers, or its request line and headers together have more than \
         `http.max_header_bytes`. If they are far larger, the service rejects them without a problem document.",
        "Send fewer or shorter headers.";
    InternalError = "internal_error", INTERNAL_SERVER_ERROR, "The service failed",
        "The service has a fault. The request did not cause it, and you can't fix it. The log of the service has the \
         cause under the `request_id`.",
        "Report the `request_id` to the operator. Another attempt rarely helps.";
    UnsupportedTransferEncoding = "unsupported_transfer_encoding", NOT_IMPLEMENTED, "The transfer coding is not supported",
        "The header `Transfer-Encoding` names a coding other than `chunked`, for example `gzip, chunked`. Or the \
         request has the header twice. The service closes the connection.",
        "Send the body as it is, with `Content-Length` or in chunks.";
    TooManyConnections = "too_many_connections", SERVICE_UNAVAILABLE, "Too many connections are open",
        "The limit `http.max_connections` is reached, perhaps because of many event streams. The service accepts a \
         few more connections, for `/healthz` and `/readyz`. Any other request on these connections gets this \
         problem, and the service closes the connection. Over HTTP/2, requests are also refused while as many others \
         are open on all connections together.",
        "Try again after `Retry-After`. An operator can raise `http.max_connections` together with the limit of file \
         descriptors, or add replicas.";
    StoreUnavailable = "store_unavailable", SERVICE_UNAVAILABLE, "The store is unavailable",
        "The database can't be used now, and `detail` says why. It is down or responds too late, has no disk, memory \
         or connection left, or takes no writes. Or its file was moved, another process holds a lock for too long, \
         or another version of the service has migrated it. Usually nothing was written. But if only the database's \
         response was lost, the service may have accepted a queued run.",
        "Try again after `Retry-After`. Send a POST with an [idempotency key](api.md#sending-a-request-again), so \
         that another attempt finds what the first one started. For operators: the log has the cause, and `GET \
         /readyz` shows when the store is back; see [when the database can't be \
         reached](operations.md#when-the-database-cant-be-reached).";
    TokenKeysUnavailable = "token_keys_unavailable", SERVICE_UNAVAILABLE, "The keys of the identity provider can't be read",
        "The service can't check the token, since it has never read the public keys of the identity provider, or not \
         for 24 hours. The token may be valid.",
        "Try again after `Retry-After`. For operators: the log has the cause, and the metric \
         `agent_runtime_jwks_age_seconds` shows the [age of the keys](tokens.md#keys-of-the-provider).";
    NotReady = "not_ready", SERVICE_UNAVAILABLE, "A part of the service is down",
        "A part of this process has panicked, for example the loop that renews the leases of runs. The process \
         restarts the part after a second, and is ready once the part has worked for ten seconds. It still serves \
         requests. Queued runs may be late, or move to another worker.",
        "Send requests to another replica until `GET /readyz` responds with 200. The log of the process has the \
         panic; please report it. If the part panics again and again, restart the process.";
    RunUnreachable = "run_unreachable", SERVICE_UNAVAILABLE, "The process of the run can't be reached",
        "Another process executes the run, and this process can't reach it. The run is not in the queue, so it can't \
         be controlled in another way. The run goes on.",
        "Try again after `Retry-After`. If you must control a run from anywhere at any time, start it in mode \
         `async`, or with an `Idempotency-Key`.";
    ShuttingDown = "shutting_down", SERVICE_UNAVAILABLE, "The service is shutting down",
        "This process is shutting down. It accepts no new runs. Runs in progress may still finish.",
        "Try again, at another replica or after `Retry-After`.";
    TooMuchInFlight = "too_much_in_flight", SERVICE_UNAVAILABLE, "Too many responses wait to be read",
        "The bytes of responses and requests in flight have reached `http.max_bytes_in_flight`, or the tenant's \
         share of it. Responses that are being made or sent count, and large request bodies that are being received. \
         The request waited 5 seconds for room and then did nothing. Runs are not affected, and no data is lost.",
        "Try again after `Retry-After`. Read responses without delay, and close connections whose responses you do \
         not need. Send large bodies one after another. Ask for less at a time: `include` leaves out parts of a \
         session, and the messages of a session come in pages.";
    AnswerTimeout = "answer_timeout", SERVICE_UNAVAILABLE, "The answer took too long",
        "The service did not respond within `http.request_timeout`. Runs have budgets instead and never meet this \
         limit.",
        "Try again later, or ask for less: smaller pages, fewer states.";
}

impl ProblemCode {
    /// Finds a code by its text.
    pub fn find(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.as_str() == code)
    }
}
