//! The scripted driver: no model is asked, tools work, and the script's end is an error.

use agent::definition::ErrorPolicyPreset;
use agent::state::{ErrorKind, ExecutionStatus, StopReason, ToolExecution};
use serde_json::json;
use test_support::fake_tool::{Behaviour, FakeTool};
use values::model_ref::ResponseFormat;

use crate::setup::{Setup, budget};

#[tokio::test]
async fn steps_are_played_in_order_and_tools_are_really_executed() {
    let tool = FakeTool::new("note", Behaviour::EchoArguments);
    let usage = json!({"input_tokens": 3, "output_tokens": 4, "total_tokens": 7});
    let setup = Setup::new([]).with_tool(&tool).with_script(json!([
        {"text": "Noting.", "tool_calls": [{"name": "note", "arguments": {"note": "a"}}, {"name": "other"}], "usage": usage},
        {"text": "Done.", "usage": usage},
        {"text": "Never said."},
    ]));
    for _ in 0..2 {
        let state = setup.run().await;
        assert_eq!(state.status(), Some(ExecutionStatus::Completed));
        assert_eq!((state.final_text().as_str(), state.usage().total_tokens), ("Done.", 14));
        let executions = &state.steps().next().unwrap().tool_executions;
        let answers: Vec<_> = executions.iter().map(ToolExecution::has_error).collect();
        assert_eq!(answers, [false, true], "the other tool is unknown");
        assert_eq!(executions[0].content[0].as_text(), Some(r#"{"note":"a"}"#));
    }
    assert_eq!(tool.begun(), 2, "each execution begins with the first step");
    assert!(setup.model.requests().is_empty());
    let reported = setup.events.names();
    let reported = reported[..reported.len() / 2]
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>();
    assert_eq!(
        reported,
        [
            "execution.started",
            "step.started",
            "message.delta",
            "tool_call.started",
            "tool_call.delta",
            "tool_call.started",
            "tool_call.delta",
            "tool_call.requested",
            "tool_call.completed",
            "tool_call.completed",
            "step.completed",
            "continuation.evaluated",
            "step.started",
            "message.delta",
            "step.completed",
            "continuation.evaluated",
            "execution.ended",
        ]
    );
}

#[tokio::test]
async fn the_end_of_the_script_is_an_error_that_no_policy_overrides() {
    let tool = FakeTool::new("note", Behaviour::EchoArguments);
    let setup = Setup::new([])
        .with_tool(&tool)
        .with_policy(ErrorPolicyPreset::RetryAll)
        .with_script(json!([{"tool_calls": [{"name": "note"}]}]));
    let state = setup.run().await;
    assert_eq!((state.status(), state.step_count()), (Some(ExecutionStatus::Failed), 2));
    let error = state.errors().last().cloned().unwrap();
    assert_eq!(error.code, "script_ended");
    assert_eq!(
        error.message,
        "the script has ended: it has 1 steps, and one more is wanted"
    );
}

#[tokio::test]
async fn scripted_errors_meet_the_policy_and_retain_the_text() {
    let script = json!([
        {"text": "Half", "error": {"kind": "rate_limit", "message": "slow down"}},
        {"text": "Whole"},
    ]);
    for (policy, status, words) in [
        (ErrorPolicyPreset::RetryAll, ExecutionStatus::Completed, "Whole"),
        (ErrorPolicyPreset::StopOnAnyError, ExecutionStatus::Failed, ""),
    ] {
        let setup = Setup::new([]).with_policy(policy).with_script(script.clone());
        let state = setup.run().await;
        assert_eq!(
            (state.status(), state.final_text().as_str()),
            (Some(status), words),
            "{policy:?}"
        );
        let step = state.steps().next().unwrap();
        let error = step.errors.last().unwrap();
        assert_eq!(
            (error.kind, error.code.as_str()),
            (ErrorKind::RateLimit, "scripted_error")
        );
        assert_eq!(step.output_messages[0].joined_text(), "Half");
    }
}

#[tokio::test]
async fn budgets_and_response_formats_hold_for_scripts() {
    let usage = json!({"input_tokens": 10, "output_tokens": 10, "total_tokens": 20});
    let budget = budget(|budget| budget.max_tokens = Some(20));
    let tool = FakeTool::new("note", Behaviour::EchoArguments);
    let spent = Setup::new([]).with_tool(&tool).with_budget(budget).with_script(json!([
        {"tool_calls": [{"name": "note"}], "usage": usage},
        {"text": "Never said."},
    ]));
    assert_eq!(spent.run().await.stop_reason(), Some(StopReason::TokenLimitReached));

    let shaped = Setup::new([])
        .with_format(ResponseFormat::JsonObject)
        .with_script(json!([{"text": "no JSON"}, {"text": "{\"a\": 1}"}]));
    let state = shaped.run().await;
    assert_eq!(state.final_value(), Some(&json!({"a": 1})));
    assert_eq!(state.errors().last().unwrap().code, "answer_invalid");
}
