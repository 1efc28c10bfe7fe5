//! The table of the errors that can end a run: code, phases, meaning and remedy. `docs/problems.md`
//! is generated from it. Codes are part of the API and never change their meaning.

macro_rules! run_error_codes {
    ($($variant:ident = $code:literal, $phases:literal, $meaning:literal, $remedy:literal;)+) => {
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

            /// Returns the phases of a run that can end with the code.
            pub fn phases(self) -> &'static str {
                match self { $(Self::$variant => $phases,)+ }
            }

            /// Returns what the code means, in Markdown.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)+ }
            }

            /// Returns what the caller can do, in Markdown.
            pub fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)+ }
            }
        }
    };
}

run_error_codes! {
    StoreUnavailable = "store_unavailable", "load, commit",
        "the database can't be reached, or can't be written",
        "try again: nothing was published";
    StoreFailed = "store_failed", "load, commit",
        "the database rejected the operation",
        "report the run to the operator";
    SessionUnreadable = "session_unreadable", "load",
        "the stored base session can't be read",
        "report the run; verify the session, and continue from its parent";
    HooksNotMade = "hooks_not_made", "load",
        "a hook of the agent can no longer be created, for example a webhook whose secret is gone. Or it can't work \
         with this run, for example a limit of cost without a price",
        "ask the operator, or correct the agent";
    ToolsNotMade = "tools_not_made", "load",
        "a tool of the agent no longer exists, or can't be used",
        "read the message; correct the agent";
    RequestUnusable = "request_unusable", "load",
        "something that the queued request needs no longer exists, for example its agent. Or the stored request \
         can't be read, also in the third attempt",
        "read the message; send the request again";
    AnswersRequired = "answers_required", "load, execute",
        "the run waited for its turn on a thread, and the session that it continues waits for answers. Or a call \
         needs an approval or input, and the run [publishes nothing](api.md#runs-that-publish-nothing)",
        "[answer the open calls](approvals.md#answering), and send the request again. A run whose calls need \
         approvals has to publish a session";
    InvalidAnswers = "invalid_answers", "load",
        "the run waited for its turn on a thread, and its answers do not fit the open calls of the session that it \
         continues",
        "read the open calls of that session, and answer them";
    SessionNotWaiting = "session_not_waiting", "load",
        "the run waited for its turn on a thread, and the session that it continues does not wait for answers",
        "the open calls have been answered: leave the answers out";
    ProgressUnreadable = "progress_unreadable", "load",
        "the journal of the run's steps can't be read",
        "report the run; send the request again";
    AttemptsExhausted = "attempts_exhausted", "execute",
        "`queue.max_attempts` workers have started the queued run, and none has ended it",
        "find out what kills the workers. The message has their number";
    PromptNotRendered = "prompt_not_rendered", "execute",
        "the system prompt reads a variable that has no value",
        "set the variable in `variables`, or correct the agent";
    UnknownToolChoice = "unknown_tool_choice", "execute",
        "`tool_choice` names a tool that the agent does not have",
        "correct `tool_choice` or the tools";
    UnsupportedToolChoice = "unsupported_tool_choice", "execute",
        "the agent's driver does not support `tool_choice`",
        "leave `tool_choice` out, or use the driver `tool_calling`";
    ResponseFormatInvalid = "response_format_invalid", "execute",
        "a hook set a response format that can't be used",
        "correct the hook's configuration";
    AnswerInvalid = "answer_invalid", "execute",
        "the output does not fit the `response_format`, also after `max_corrections` corrections",
        "read the message: it names the part and the reason. Another model or a simpler schema may help. See [bounds \
         on the work](agents.md#schemas-of-outputs)";
    AnswerIncomplete = "answer_incomplete", "execute",
        "its limit of tokens or the provider cut the output, which has to fit the `response_format`",
        "raise `parameters.max_output_tokens`, or ask for less";
    DecisionMalformed = "decision_malformed", "execute",
        "three completions in a row were not a decision of the driver `react`",
        "use a more capable model, or the driver `tool_calling`";
    ScriptedError = "scripted_error", "execute",
        "the script of the agent has this error",
        "correct the script, unless the error is intended";
    ScriptEnded = "script_ended", "execute",
        "the script of the agent has no step left",
        "add a step with `text`, which ends an execution";
    HookFailed = "hook_failed", "execute",
        "a hook of the agent failed, for example a [webhook](webhook-hook.md) that did not reply",
        "read the message; correct the hook's configuration or the receiver";
    ExecutionFailed = "execution_failed", "execute",
        "the execution failed without an error of its own",
        "read the steps of the run";
    ModelAuth = "model_auth", "execute",
        "the provider rejects the service's API key",
        "ask the operator to correct the key of the provider that the message names";
    ModelRateLimited = "model_rate_limited", "execute",
        "the provider accepts no more requests for now",
        "try again later";
    ModelOverloaded = "model_overloaded", "execute",
        "the provider has no capacity",
        "try again later, or use another model";
    ModelContextExceeded = "model_context_exceeded", "execute",
        "the conversation is longer than the model's context",
        "use another model, [summarise](compaction.md), or start a new conversation. If the provider says it in \
         words that the service does not know, add them to [`error_words`](configuration.md#providers)";
    ModelRequestRefused = "model_request_refused", "execute",
        "the provider rejects the request as malformed",
        "read the message; another model may accept it. A 404 may mean that the `base_url` of the provider lacks its \
         path, for example `/v1`";
    ModelServerError = "model_server_error", "execute",
        "the provider failed, or ended its completion for a reason that is [no success](models.md#whole-completions)",
        "try again";
    ModelUnreachable = "model_unreachable", "execute",
        "the connection to the provider failed. There is only one attempt if the connection is refused, the host is \
         unknown or the certificate is not valid",
        "read the message: it names the provider, its host and the cause. The log has the whole address and all \
         causes";
    ModelTimeout = "model_timeout", "execute",
        "the provider did not respond in time",
        "try again";
    ModelAnswerTruncated = "model_answer_truncated", "execute",
        "the completion broke off, also in further attempts",
        "try again";
    ModelProtocolError = "model_protocol_error", "execute",
        "the response does not follow the provider's protocol, is empty, or announces tool calls and has none",
        "try again; report the run to the operator if it happens again";
    EnvironmentNotExported = "environment_not_exported", "commit",
        "the environment can't be exported",
        "read the message";
    StorageQuotaExceeded = "storage_quota_exceeded", "execute, commit",
        "the tenant may not store more files: `limits.each_tenant.max_stored_file_bytes`",
        "delete sessions that you no longer need, or ask the operator for more";
    SessionTooLarge = "session_too_large", "load, commit",
        "the session would be larger than `store.max_session_bytes`",
        "see [session_too_large](#session_too_large)";
    BaseSessionConflict = "base_session_conflict", "commit",
        "another run continued the base first. The response to a synchronous request is 409 instead",
        "see [base_session_conflict](#base_session_conflict)";
    BaseSessionRemoved = "base_session_removed", "load, commit",
        "the session that the run continues was removed before the run started, or while it worked",
        "continue another session, or start a new conversation";
    JournalFailed = "journal_failed", "execute",
        "the journal of the run's steps could not be written",
        "try again: nothing was published";
    InternalError = "internal_error", "any",
        "a fault of the service",
        "report the run to the operator";
}

impl From<RunErrorCode> for String {
    fn from(code: RunErrorCode) -> Self {
        code.as_str().to_owned()
    }
}
