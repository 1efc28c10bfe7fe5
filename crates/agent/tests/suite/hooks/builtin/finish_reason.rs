//! `finish_reason`: which reasons end an execution, and what the end is called.

use agent::state::{ExecutionStatus, FinishReason, StopReason};
use serde_json::json;
use test_support::fake_model::{asks_for, completed, says, usage};
use test_support::fake_tool::{Behaviour, FakeTool};
use values::message::ContentPart;

use crate::setup::Setup;

#[tokio::test(start_paused = true)]
async fn a_listed_reason_ends_the_execution_and_others_do_not() {
    for (reason, stop_on, stops) in [
        ("length", vec!["length"], true),
        ("length", vec!["content_filter", "length"], true),
        ("content_filter", vec!["length"], false),
        ("content_filter", vec!["content_filter"], true),
        ("refusal", vec!["refusal"], true),
        ("eos", vec!["eos"], true),
        ("eos", vec!["EOS"], false),
        ("stop", vec!["length"], false),
        ("stop", vec!["stop"], true),
    ] {
        let answer = completed(
            vec![ContentPart::text("a")],
            FinishReason::from(reason.to_owned()),
            usage(10, 5),
        );
        let setup = Setup::new([vec![answer]]).with_attached("finish_reason", json!({"stop_on": stop_on}));
        let state = setup.run().await;
        let case = format!("{reason} {stop_on:?}");
        assert_eq!(state.status(), Some(ExecutionStatus::Completed), "{case}");
        assert!(!state.execution().unwrap().was_force_stopped(), "{case}");
        if !stops {
            assert_eq!(
                (state.stop_reason(), state.stop_signal()),
                (Some(StopReason::Completed), None),
                "{case}"
            );
            continue;
        }
        let signal = state.stop_signal().unwrap();
        assert_eq!(signal.reason, StopReason::FinishReasonReceived, "{case}");
        assert_eq!(signal.source.as_deref(), Some("finish_reason"), "{case}");
        assert_eq!(
            signal.message,
            format!("the model ended its answer with {reason:?}"),
            "{case}"
        );
        assert_eq!(json!(signal.context), json!({"finish_reason": reason}), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn tool_calls_continue_unless_their_own_reason_is_listed() {
    for (stop_on, steps) in [("length", 2), ("tool_calls", 1)] {
        let setup = Setup::new([asks_for(&[("c1", "echo", "{}")]), says("done")])
            .with_tool(&FakeTool::new("echo", Behaviour::EchoArguments))
            .with_attached("finish_reason", json!({"stop_on": [stop_on]}));
        let state = setup.run().await;
        assert_eq!(state.step_count(), steps, "{stop_on}");
        assert_eq!(state.status(), Some(ExecutionStatus::Completed), "{stop_on}");
    }
}
