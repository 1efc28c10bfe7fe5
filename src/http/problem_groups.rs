//! Problems that several routes have, for their descriptions.

use super::codes::ProblemCode;

/// The problems of routes with a session id.
pub(super) const SESSION_PROBLEMS: &[ProblemCode] = &[ProblemCode::SessionNotFound, ProblemCode::SessionNotCommitted];

/// The problems of routes that publish a session with other files.
pub(super) const CHILD_PROBLEMS: &[ProblemCode] = &[
    ProblemCode::BaseSessionConflict,
    ProblemCode::SessionTooLarge,
    ProblemCode::WorkspaceTooLarge,
    ProblemCode::StorageQuotaExceeded,
];

/// The problems of routes that take an agent's definition.
pub(super) const AGENT_PROBLEMS: &[ProblemCode] = &[
    ProblemCode::AgentNotFound,
    ProblemCode::NotAllowed,
    ProblemCode::UnknownModel,
    ProblemCode::ModelNotConfigured,
    ProblemCode::UnknownTool,
    ProblemCode::UnknownHook,
    ProblemCode::InvalidHook,
    ProblemCode::InvalidPrompt,
    ProblemCode::InvalidResponseFormat,
];

/// The problems of all routes of the console's sessions.
pub(super) const CONSOLE_PROBLEMS: &[ProblemCode] = &[
    ProblemCode::RouteNotFound,
    ProblemCode::OriginNotAllowed,
    ProblemCode::TooManyUnknownKeys,
    ProblemCode::UnknownParameter,
    ProblemCode::InvalidParameter,
    ProblemCode::InvalidUtf8,
    ProblemCode::StoreUnavailable,
];

/// The problems of routes that run an agent for a client of OpenAI.
pub(super) const OPENAI_PROBLEMS: &[&[ProblemCode]] = &[
    AGENT_PROBLEMS,
    &[
        ProblemCode::AboveCeiling,
        ProblemCode::UnsupportedParameter,
        ProblemCode::SessionNotFound,
        ProblemCode::TooManyMessages,
        ProblemCode::InvalidHistory,
        ProblemCode::ThreadBusy,
        ProblemCode::QueueFull,
        ProblemCode::TooManyRuns,
        ProblemCode::SpendLimitReached,
        ProblemCode::TooManyReaders,
        ProblemCode::ShuttingDown,
        ProblemCode::SessionTooLarge,
        ProblemCode::AnswersRequired,
        ProblemCode::InvalidAnswers,
        ProblemCode::SessionNotWaiting,
        ProblemCode::RunNotFound,
    ],
];

/// The problems of routes that start a run. The run of an earlier request with the key may have
/// been removed since.
pub(super) const START_PROBLEMS: &[&[ProblemCode]] = &[
    AGENT_PROBLEMS,
    &[
        ProblemCode::AboveCeiling,
        ProblemCode::SessionNotFound,
        ProblemCode::SessionNotCommitted,
        ProblemCode::TooManyMessages,
        ProblemCode::InvalidHistory,
        ProblemCode::BaseSessionConflict,
        ProblemCode::ThreadBusy,
        ProblemCode::QueueFull,
        ProblemCode::TooManyRuns,
        ProblemCode::SpendLimitReached,
        ProblemCode::ShuttingDown,
        ProblemCode::SessionTooLarge,
        ProblemCode::AnswersRequired,
        ProblemCode::InvalidAnswers,
        ProblemCode::SessionNotWaiting,
        ProblemCode::RunNotWaiting,
        ProblemCode::RunNotFound,
        ProblemCode::MalformedId,
        ProblemCode::TooManyReaders,
    ],
];
