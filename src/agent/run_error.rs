//! The codes of the errors that can end a run, in one table: the code and what it means. Codes are
//! part of the API and never change their meaning. docs/problems/run-errors.md says what a caller
//! can do.

macro_rules! run_error_codes {
    ($($variant:ident = $code:literal, $meaning:literal;)+) => {
        /// Names an error that can end a run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum RunErrorCode {
            $(#[doc = $meaning] $variant,)+
        }

        impl RunErrorCode {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the stable code.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// Returns what the code means, in Markdown.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)+ }
            }
        }
    };
}

run_error_codes! {
    StoreUnavailable = "store_unavailable", "the database can't be reached";
    StoreFailed = "store_failed", "the database refused the operation";
    SessionUnreadable = "session_unreadable", "what is stored of the base session can't be read";
    EnvironmentNotRestored = "environment_not_restored", "a resource of the environment can't be restored";
    HooksNotMade = "hooks_not_made", "a hook of the agent can't be made any more, such as a webhook whose secret is gone, or can't work with this run, such as a limit of cost without a price";
    ToolsNotMade = "tools_not_made", "a tool of the agent is not there any more, or can't be used";
    RequestUnusable = "request_unusable", "what the queued run was accepted with is not there any more, such as its agent, or can't be read, also with its third attempt";
    ProgressUnreadable = "progress_unreadable", "what is kept of the steps of the run can't be read";
    AttemptsExhausted = "attempts_exhausted", "as many workers as `queue.max_attempts` have begun the queued run, and none has ended it";
    PromptNotRendered = "prompt_not_rendered", "the system prompt reads a variable that has no value";
    UnknownToolChoice = "unknown_tool_choice", "`tool_choice` names a tool that the agent does not have";
    UnsupportedToolChoice = "unsupported_tool_choice", "the agent's driver takes no `tool_choice`";
    ResponseFormatInvalid = "response_format_invalid", "a hook set a response format that no answer can be held to";
    AnswerInvalid = "answer_invalid", "the answer does not fit the `response_format`, also after `max_corrections` corrections";
    AnswerIncomplete = "answer_incomplete", "the answer was cut by its limit of tokens or by the provider before it fitted the `response_format`";
    DecisionMalformed = "decision_malformed", "three answers in a row were no decision of the ReAct driver";
    ScriptedError = "scripted_error", "the script of the agent says so";
    ScriptEnded = "script_ended", "the script of the agent has no step left";
    HookFailed = "hook_failed", "a hook of the agent failed, such as a webhook that did not answer";
    ExecutionFailed = "execution_failed", "the execution failed without an error of its own";
    ModelAuth = "model_auth", "the provider refuses the service's API key";
    ModelRateLimited = "model_rate_limited", "the provider takes no more requests for now";
    ModelOverloaded = "model_overloaded", "the provider has no capacity";
    ModelContextExceeded = "model_context_exceeded", "the conversation is longer than the model's context";
    ModelRequestRefused = "model_request_refused", "the provider refuses the request as malformed";
    ModelServerError = "model_server_error", "the provider failed";
    ModelUnreachable = "model_unreachable", "the connection to the provider failed; one that is refused, to a host that is not known or without a valid certificate is tried only once";
    ModelTimeout = "model_timeout", "the provider did not answer in time";
    ModelAnswerTruncated = "model_answer_truncated", "the answer ended without an end, also after other attempts";
    ModelProtocolError = "model_protocol_error", "the answer is not what the provider's protocol says";
    EnvironmentNotExported = "environment_not_exported", "the environment can't be exported";
    SessionTooLarge = "session_too_large", "the session would be larger than `store.max_session_bytes`";
    BaseSessionConflict = "base_session_conflict", "another run continued the base first; a synchronous run answers 409 instead";
    BaseSessionRemoved = "base_session_removed", "the session that the run continues was removed before the run began, or while it worked";
    ThreadMoved = "thread_moved", "the run was to win its thread (`\"conflict\": \"reject\"`), which was moved elsewhere while it worked; a synchronous run answers 409 instead";
    JournalFailed = "journal_failed", "what keeps the run's steps refused them";
    InternalError = "internal_error", "the service met a fault of its own";
}

impl From<RunErrorCode> for String {
    fn from(code: RunErrorCode) -> Self {
        code.as_str().to_owned()
    }
}
