//! The error policy as a table: every kind of error against every decision, the presets, and what
//! counts as in a row.

use agent::AgentEvent;
use agent::definition::{ErrorDecision, ErrorPolicy, ErrorPolicyPreset};
use agent::ports::{ModelError, ModelErrorClass};
use agent::state::{AgentState, ErrorKind, ExecutionStatus, StopReason};
use serde_json::json;
use test_support::fake_model::{Beat, asks_for, says, text};
use test_support::fake_tool::{Behaviour, FakeTool};

use crate::setup::{Setup, last_words, transcript};

const LIMIT: usize = 3;

/// A step with an error of the kind.
fn failing(kind: ErrorKind) -> Vec<Beat> {
    let class = match kind {
        ErrorKind::Tool => return asks_for(&[("c", "broken", "{}")]),
        ErrorKind::RateLimit => ModelErrorClass::RateLimit,
        ErrorKind::Timeout => ModelErrorClass::Timeout,
        _ => ModelErrorClass::Server,
    };
    vec![Beat::Error(ModelError::new(class, "broke"))]
}

fn setup(answers: Vec<Vec<Beat>>, policy: ErrorPolicy) -> Setup {
    Setup::new(answers)
        .with_tool(&FakeTool::new("broken", Behaviour::Fail("broke".to_owned())))
        .with_tool(&FakeTool::new("echo", Behaviour::EchoArguments))
        .with_error_policy(policy)
}

/// A policy that decides so about the kind and stops on everything else.
fn custom(kind: &str, decision: ErrorDecision) -> ErrorPolicy {
    let mut table = json!({"tool": "stop", "max_consecutive": LIMIT});
    table[kind] = json!(decision);
    serde_json::from_value(table).unwrap()
}

/// The number of steps, the status and the reason.
fn end(state: &AgentState) -> (usize, ExecutionStatus, StopReason) {
    (
        state.step_count(),
        state.status().unwrap(),
        state.stop_reason().unwrap(),
    )
}

const FAILED: (ExecutionStatus, StopReason) = (ExecutionStatus::Failed, StopReason::ErrorForbade);
const GIVEN_UP: (ExecutionStatus, StopReason) = (ExecutionStatus::Stopped, StopReason::RetryLimitReached);
const COMPLETED: (ExecutionStatus, StopReason) = (ExecutionStatus::Completed, StopReason::Completed);

#[tokio::test(start_paused = true)]
async fn every_kind_of_error_is_treated_as_its_decision_says() {
    use ErrorDecision::{Ignore, Retry, Stop};
    for (kind, name) in [
        (ErrorKind::Tool, "tool"),
        (ErrorKind::Model, "model"),
        (ErrorKind::RateLimit, "rate_limit"),
        (ErrorKind::Timeout, "timeout"),
    ] {
        // How many steps fail before one works, and how many steps there are then.
        for (decision, failures, steps, (status, reason)) in [
            (Stop, 1, 1, FAILED),
            (Retry, 1, 2, COMPLETED),
            (Retry, LIMIT - 1, LIMIT, COMPLETED),
            (Retry, LIMIT, LIMIT, GIVEN_UP),
            (Ignore, 1, 2, COMPLETED),
            (Ignore, LIMIT + 2, LIMIT + 3, COMPLETED),
        ] {
            let answers = std::iter::repeat_n(failing(kind), failures).chain([says("done")]);
            let setup = setup(answers.collect(), custom(name, decision));
            let state = setup.run().await;
            let case = format!("{name} {decision:?} {failures}");
            assert_eq!(end(&state), (steps, status, reason), "{case}");
            assert_eq!(state.errors().len(), failures, "{case}");
            assert!(state.errors().iter().all(|error| error.kind == kind), "{case}");
            if status != ExecutionStatus::Completed {
                let signal = state.stop_signal().unwrap();
                assert_eq!(signal.source.as_deref(), Some("error_policy"), "{case}");
                assert_eq!(signal.message, "broke", "{case}");
                assert_eq!(signal.context["consecutive"], json!(failures), "{case}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_can_not_be_rendered_is_an_error_of_validation() {
    for (decision, steps, (status, reason)) in [
        (ErrorDecision::Stop, 1, FAILED),
        (ErrorDecision::Retry, LIMIT, GIVEN_UP),
    ] {
        let setup = setup(Vec::new(), custom("validation", decision));
        let state = setup.new_state().with_system_prompt("{{ metadata.missing }}");
        let state = setup.run_from(state, "go").await;
        assert_eq!(end(&state), (steps, status, reason), "{decision:?}");
        assert!(state.errors().iter().all(|error| error.kind == ErrorKind::Validation));
        assert!(setup.model.requests().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn presets_do_what_their_names_mean() {
    use ErrorPolicyPreset::{IgnoreToolErrors, RetryAll, RetryToolErrors, StopOnAnyError};
    for (preset, kind, failures, steps, (status, reason)) in [
        (StopOnAnyError, ErrorKind::Tool, 1, 1, FAILED),
        (StopOnAnyError, ErrorKind::Model, 1, 1, FAILED),
        (RetryToolErrors, ErrorKind::Tool, 2, 3, COMPLETED),
        (RetryToolErrors, ErrorKind::Tool, 3, 3, GIVEN_UP),
        (RetryToolErrors, ErrorKind::Model, 1, 1, FAILED),
        (IgnoreToolErrors, ErrorKind::Tool, 9, 10, COMPLETED),
        (IgnoreToolErrors, ErrorKind::Model, 1, 1, FAILED),
        (RetryAll, ErrorKind::Tool, 4, 5, COMPLETED),
        (RetryAll, ErrorKind::Model, 4, 5, COMPLETED),
        (RetryAll, ErrorKind::Model, 5, 5, GIVEN_UP),
        (RetryAll, ErrorKind::RateLimit, 5, 5, GIVEN_UP),
        (RetryAll, ErrorKind::Timeout, 5, 5, GIVEN_UP),
    ] {
        let answers = std::iter::repeat_n(failing(kind), failures).chain([says("done")]);
        let setup = setup(answers.collect(), ErrorPolicy::Preset(preset));
        let state = setup.run().await;
        let case = format!("{preset:?} {kind:?} {failures}");
        assert_eq!(end(&state), (steps, status, reason), "{case}");
        assert_eq!(setup.model.requests().len(), steps, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_failures_in_a_row_are_counted_and_ignored_ones_end_the_row() {
    let works = || asks_for(&[("c", "echo", "{}")]);
    let (model, tool) = (|| failing(ErrorKind::Model), || failing(ErrorKind::Tool));
    // Model errors are retried, three in a row end the execution; tool errors are ignored.
    let policy = || custom("model", ErrorDecision::Retry);
    let policy = || {
        let mut table = serde_json::to_value(policy()).unwrap();
        table["tool"] = json!("ignore");
        serde_json::from_value(table).unwrap()
    };
    for (answers, expected) in [
        (
            vec![model(), model(), works(), model(), model(), says("done")],
            (6, COMPLETED),
        ),
        (
            vec![model(), model(), tool(), model(), model(), says("done")],
            (6, COMPLETED),
        ),
        (vec![works(), model(), model(), model()], (4, GIVEN_UP)),
        (vec![model(), model(), tool(), model(), model(), model()], (6, GIVEN_UP)),
    ] {
        let setup = setup(answers, policy());
        let state = setup.run().await;
        let (steps, status, reason) = end(&state);
        assert_eq!((steps, (status, reason)), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn of_several_errors_of_a_step_the_strictest_decision_is_taken() {
    // The model fails after it has asked for nothing; tools that fail beside each other are one
    // failure.
    let two = asks_for(&[("a", "broken", "{}"), ("b", "broken", "{}")]);
    let setup = setup(
        vec![two.clone(), two, says("done")],
        ErrorPolicy::Preset(ErrorPolicyPreset::RetryToolErrors),
    );
    let state = setup.run().await;
    assert_eq!(end(&state), (3, COMPLETED.0, COMPLETED.1));
    assert_eq!(state.errors().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_tool_error_that_the_model_recovers_from_is_read_and_the_run_completes() {
    let setup = setup(vec![failing(ErrorKind::Tool), says("sorry")], ErrorPolicy::default());
    let state = setup.run().await;
    assert_eq!(end(&state), (2, COMPLETED.0, COMPLETED.1));
    assert_eq!(
        transcript(&state),
        ["user: go", "assistant: call c", "tool: error c", "assistant: sorry"]
    );
    assert!(!state.errors().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_failed_model_call_leaves_its_error_and_what_had_arrived() {
    let answer = vec![
        text("half a"),
        text(" sentence"),
        Beat::Fail(ModelErrorClass::Network, "reset"),
    ];
    let setup = setup(vec![answer], ErrorPolicy::default());
    let state = setup.run().await;
    assert_eq!(end(&state), (1, FAILED.0, FAILED.1));
    assert_eq!(last_words(&state), "half a sentence");
    let error = state.errors().last().cloned().unwrap();
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("model_unreachable", "reset")
    );
    assert_eq!(error.source_name.as_deref(), Some("fake/one"));
    let reported = setup.events.events().into_iter().find_map(|event| match event {
        AgentEvent::ModelResponded { error, .. } => error,
        _ => None,
    });
    assert_eq!(reported, Some(Box::new(error)));
    let ended = setup.events.events().into_iter().find_map(|event| match event {
        AgentEvent::ExecutionEnded {
            status,
            message,
            was_force_stopped,
            ..
        } => Some((status, message, was_force_stopped)),
        _ => None,
    });
    assert_eq!(ended, Some((ExecutionStatus::Failed, Some("reset".to_owned()), true)));
}
