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
    StoreUnavailable = "store_unavailable", "the database can't be reached, or can't be written";
    StoreFailed = "store_failed", "the database rejected the operation";
    SessionUnreadable = "session_unreadable", "the stored base session can't be read";
    HooksNotMade = "hooks_not_made", "a hook of the agent can no longer be created, for example a webhook whose secret is gone. Or it can't work with this run, for example a limit of cost without a price";
    ToolsNotMade = "tools_not_made", "a tool of the agent no longer exists, or can't be used";
    RequestUnusable = "request_unusable", "something that the queued request needs no longer exists, for example its agent. Or the stored request can't be read, also in the third attempt";
    AnswersRequired = "answers_required", "the run waited for its turn on a thread, and the session that it continues waits for answers";
    InvalidAnswers = "invalid_answers", "the run waited for its turn on a thread, and its answers do not fit the open calls of the session that it continues";
    SessionNotWaiting = "session_not_waiting", "the run waited for its turn on a thread, and the session that it continues does not wait for answers";
    ProgressUnreadable = "progress_unreadable", "the journal of the run's steps can't be read";
    AttemptsExhausted = "attempts_exhausted", "`queue.max_attempts` workers have started the queued run, and none has ended it";
    PromptNotRendered = "prompt_not_rendered", "the system prompt reads a variable that has no value";
    UnknownToolChoice = "unknown_tool_choice", "`tool_choice` names a tool that the agent does not have";
    UnsupportedToolChoice = "unsupported_tool_choice", "the agent's driver does not support `tool_choice`";
    ResponseFormatInvalid = "response_format_invalid", "a hook set a response format that can't be used";
    AnswerInvalid = "answer_invalid", "the output does not fit the `response_format`, also after `max_corrections` corrections";
    AnswerIncomplete = "answer_incomplete", "its limit of tokens or the provider cut the output, which has to fit the `response_format`";
    DecisionMalformed = "decision_malformed", "three completions in a row were not a decision of the driver `react`";
    ScriptedError = "scripted_error", "the script of the agent has this error";
    ScriptEnded = "script_ended", "the script of the agent has no step left";
    HookFailed = "hook_failed", "a hook of the agent failed, for example a webhook that did not reply";
    ExecutionFailed = "execution_failed", "the execution failed without an error of its own";
    ModelAuth = "model_auth", "the provider rejects the service's API key";
    ModelRateLimited = "model_rate_limited", "the provider accepts no more requests for now";
    ModelOverloaded = "model_overloaded", "the provider has no capacity";
    ModelContextExceeded = "model_context_exceeded", "the conversation is longer than the model's context";
    ModelRequestRefused = "model_request_refused", "the provider rejects the request as malformed";
    ModelServerError = "model_server_error", "the provider failed, or ended its completion for a reason that is no success";
    ModelUnreachable = "model_unreachable", "the connection to the provider failed. There is only one attempt if the connection is refused, the host is unknown or the certificate is not valid";
    ModelTimeout = "model_timeout", "the provider did not respond in time";
    ModelAnswerTruncated = "model_answer_truncated", "the completion broke off, also in further attempts";
    ModelProtocolError = "model_protocol_error", "the response does not follow the provider's protocol, is empty, or announces tool calls and has none";
    EnvironmentNotExported = "environment_not_exported", "the environment can't be exported";
    StorageQuotaExceeded = "storage_quota_exceeded", "the tenant may not store more files: `limits.each_tenant.max_stored_file_bytes`";
    SessionTooLarge = "session_too_large", "the session would be larger than `store.max_session_bytes`";
    BaseSessionConflict = "base_session_conflict", "another run continued the base first. The response to a synchronous request is 409 instead";
    BaseSessionRemoved = "base_session_removed", "the session that the run continues was removed before the run started, or while it worked";
    JournalFailed = "journal_failed", "the journal of the run's steps could not be written";
    InternalError = "internal_error", "a fault of the service";
}

impl From<RunErrorCode> for String {
    fn from(code: RunErrorCode) -> Self {
        code.as_str().to_owned()
    }
}
