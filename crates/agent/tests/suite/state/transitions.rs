//! The status of an execution, from its beginning to each of its ends.

use agent::state::{
    AgentError, AgentState, AgentStep, ErrorKind, ErrorList, ExecutionStatus, Messages, StopReason, StopSignal,
};
use test_support::clock::TestClock;
use values::clock::Clock as _;
use values::ids::{AgentId, ExecutionId, StepId, UuidV7Source};

use ExecutionStatus::{Completed, Failed, Stopped};

/// The error of a step, the stop after it, and the status and reason of the end.
const ENDS: [(Option<ErrorKind>, Option<StopReason>, ExecutionStatus, StopReason); 17] = [
    (None, None, Completed, StopReason::Completed),
    (None, Some(StopReason::ErrorForbade), Failed, StopReason::ErrorForbade),
    (
        None,
        Some(StopReason::StopRequested),
        Stopped,
        StopReason::StopRequested,
    ),
    (
        None,
        Some(StopReason::StepsLimitReached),
        Stopped,
        StopReason::StepsLimitReached,
    ),
    (
        None,
        Some(StopReason::TokenLimitReached),
        Stopped,
        StopReason::TokenLimitReached,
    ),
    (
        None,
        Some(StopReason::SpendLimitReached),
        Stopped,
        StopReason::SpendLimitReached,
    ),
    (
        None,
        Some(StopReason::TimeLimitReached),
        Stopped,
        StopReason::TimeLimitReached,
    ),
    (
        None,
        Some(StopReason::RetryLimitReached),
        Stopped,
        StopReason::RetryLimitReached,
    ),
    (
        None,
        Some(StopReason::FinishReasonReceived),
        Completed,
        StopReason::FinishReasonReceived,
    ),
    (
        None,
        Some(StopReason::UserRequested),
        Stopped,
        StopReason::UserRequested,
    ),
    (None, Some(StopReason::Completed), Completed, StopReason::Completed),
    (
        None,
        Some(StopReason::AnswerRequired),
        ExecutionStatus::Waiting,
        StopReason::AnswerRequired,
    ),
    (None, Some(StopReason::Unknown), Stopped, StopReason::Unknown),
    // An error that nobody decided about forbids; one that somebody did does not.
    (Some(ErrorKind::Model), None, Failed, StopReason::ErrorForbade),
    (Some(ErrorKind::Unknown), None, Failed, StopReason::ErrorForbade),
    (
        Some(ErrorKind::Model),
        Some(StopReason::RetryLimitReached),
        Stopped,
        StopReason::RetryLimitReached,
    ),
    (
        Some(ErrorKind::Model),
        Some(StopReason::Completed),
        Completed,
        StopReason::Completed,
    ),
];

#[test]
fn an_execution_goes_from_nothing_by_in_progress_to_its_end() {
    let clock = TestClock::new();
    let now = clock.now();
    for (error, reason, status, ends) in ENDS {
        let case = format!("{error:?} {reason:?}");
        let state = AgentState::new(AgentId::generate(&UuidV7Source), now);
        assert_eq!((state.status(), state.has_active_execution()), (None, false), "{case}");
        // Without an execution nothing of one changes.
        assert_eq!(state.clone().with_execution_ended(now), state, "{case}");
        let state = state.start_execution(ExecutionId::generate(&UuidV7Source), now);
        let standing = (state.status(), state.has_active_execution(), state.stop_reason());
        assert_eq!(standing, (Some(ExecutionStatus::InProgress), true, None), "{case}");
        let mut step = AgentStep::new(StepId::generate(&UuidV7Source), Messages::default());
        step.errors = error.map(error_of).into_iter().collect::<ErrorList>();
        let state = state.with_step_started(now).with_current_step(step, now);
        let state = match reason {
            Some(reason) => state.with_stop_signal(StopSignal::new(reason, "test", "enough"), now),
            None => state,
        };
        let state = state.with_step_recorded(now);
        assert_eq!(state.status(), Some(ExecutionStatus::InProgress), "{case}");
        let state = state.with_execution_ended(now);
        assert_eq!(
            (state.status(), state.stop_reason()),
            (Some(status), Some(ends)),
            "{case}"
        );
        let execution = state.execution().unwrap();
        assert_eq!(execution.was_force_stopped(), status != Completed, "{case}");
        assert_eq!(
            (execution.status.is_terminal(), execution.completed_at),
            (true, Some(now)),
            "{case}"
        );
        assert!(!state.has_active_execution(), "{case}");
        assert_eq!(state.execution_count(), 1, "{case}");
        let next = state.start_execution(ExecutionId::generate(&UuidV7Source), now);
        assert_eq!(
            (next.status(), next.execution_count()),
            (Some(ExecutionStatus::InProgress), 2),
            "{case}"
        );
    }
}

fn error_of(kind: ErrorKind) -> AgentError {
    AgentError {
        kind,
        code: "broken".to_owned(),
        message: "it broke".to_owned(),
        source_name: None,
    }
}

#[test]
fn every_reason_is_in_the_table() {
    for reason in StopReason::ALL.iter().copied() {
        assert!(
            ENDS.iter().any(|(_, signalled, ..)| *signalled == Some(reason)),
            "{reason}"
        );
    }
}

#[test]
fn only_ends_are_terminal() {
    for (status, is_terminal) in [
        (ExecutionStatus::InProgress, false),
        (Completed, true),
        (Stopped, true),
        (Failed, true),
        (ExecutionStatus::Waiting, true),
        (ExecutionStatus::Unknown, false),
    ] {
        assert_eq!(status.is_terminal(), is_terminal, "{status:?}");
    }
}
