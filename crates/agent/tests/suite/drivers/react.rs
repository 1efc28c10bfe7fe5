//! The driver for models without tools: what the model reads, what is stored, and decisions that
//! can't be read.

use std::sync::Arc;

use agent::AgentEvent;
use agent::definition::{DriverKind, ErrorPolicyPreset};
use agent::ports::ModelRequest;
use agent::state::{AgentState, AgentStep, AgentStepType, ErrorKind, ExecutionStatus, FinishReason, StopReason};
use proptest::prelude::*;
use serde_json::json;
use test_support::fake_model::{Beat, FakeModel, asks_for, completed, says, text, usage};
use test_support::fake_tool::{Behaviour, FakeTool};
use values::message::{ContentPart, Message, Role};
use values::model_ref::ResponseFormat;

use crate::setup::{Setup, budget, last_words, transcript};

const ACT: &str = r#"{"thought": "I look.", "action": {"tool": "look", "arguments": {"note": "x"}}}"#;
const ANSWER: &str = "```json\n{\"thought\": \"I know.\", \"answer\": \"Sunny.\"}\n```";

fn setup(answers: impl IntoIterator<Item = Vec<Beat>>) -> Setup {
    Setup::new(answers).with_driver(DriverKind::React)
}

fn look() -> Arc<FakeTool> {
    FakeTool::new("look", Behaviour::EchoArguments)
}

fn read(request: &ModelRequest) -> Vec<(Role, String)> {
    let line = |message: &Arc<Message>| (message.role, message.joined_text());
    request.messages.iter().map(line).collect()
}

/// Without the ids of calls, which differ from run to run.
fn neutral(state: &AgentState) -> Vec<String> {
    let cut = |line: String| match line.find("call_") {
        Some(at) => line[..at].to_owned(),
        None => line,
    };
    transcript(state).into_iter().map(cut).collect()
}

#[tokio::test]
async fn thoughts_actions_and_observations_are_text_for_the_model_and_neutral_in_the_history() {
    let tool = look();
    let setup = setup([says(ACT), says(ANSWER)]).with_tool(&tool);
    let state = setup.new_state().with_system_prompt("Be brief.");
    let state = setup.run_from(state, "go").await;
    assert_eq!(state.status(), Some(ExecutionStatus::Completed));
    assert_eq!((state.final_text().as_str(), tool.begun()), ("Sunny.", 1));
    let stored = [
        "user: go",
        "assistant: I look. call ",
        "tool: result ",
        "assistant: Sunny.",
    ];
    assert_eq!(neutral(&state), stored);
    let types: Vec<_> = state.steps().map(AgentStep::step_type).collect();
    assert_eq!(types, [AgentStepType::ToolExecution, AgentStepType::FinalResponse]);

    let [first, second] = &setup.model.requests()[..] else {
        panic!("two requests are made")
    };
    assert!(first.system.starts_with("Be brief.\n\nWork step by step."));
    assert!(
        first
            .system
            .contains("look: does look\n{\"additionalProperties\":false")
    );
    assert_eq!(first.system, second.system);
    assert!(first.tools.is_empty() && second.tools.is_empty());
    let expected = [
        (Role::User, "go"),
        (
            Role::Assistant,
            r#"{"thought":"I look.","action":{"tool":"look","arguments":{"note":"x"}}}"#,
        ),
        (Role::User, r#"Observation: {"note":"x"}"#),
    ];
    assert_eq!(read(second), expected.map(|(role, text)| (role, text.to_owned())));
}

#[tokio::test]
async fn events_have_what_is_stored_and_no_raw_decision() {
    let setup = setup([says(ACT), says(ANSWER)]).with_tool(&look());
    setup.run().await;
    let reported = setup.events.events().into_iter().filter_map(|event| match event {
        AgentEvent::ReasoningDelta { text, .. } => Some(format!("thought: {text}")),
        AgentEvent::MessageDelta { text, .. } => Some(format!("words: {text}")),
        AgentEvent::ToolCallStarted { name, .. } => Some(format!("call: {name}")),
        AgentEvent::ToolCallDelta { arguments, .. } => Some(format!("arguments: {arguments}")),
        _ => None,
    });
    assert_eq!(
        reported.collect::<Vec<_>>(),
        [
            "words: I look.",
            "call: look",
            r#"arguments: {"note":"x"}"#,
            "thought: I know.",
            "words: Sunny.",
        ]
    );
}

#[tokio::test]
async fn a_session_continues_with_another_driver_in_both_directions() {
    let tool = look();
    let first = setup([says(ACT), says(ANSWER)]).with_tool(&tool);
    let state = first.run().await;
    let calling = Setup::new([asks_for(&[("c1", "look", "{}")]), says("Still sunny.")]).with_tool(&tool);
    let state = calling.run_from(state, "and now?").await;
    assert_eq!(state.stored_messages().count(), 8);
    let again = setup([says(ANSWER)]).with_tool(&tool);
    again.run_from(state, "thanks").await;
    let expected = [
        (Role::User, "go"),
        (Role::Assistant, r#"{"answer":"Sunny."}"#),
        (Role::User, "and now?"),
        (Role::Assistant, r#"{"answer":"Still sunny."}"#),
        (Role::User, "thanks"),
    ];
    let request = &again.model.requests()[0];
    assert_eq!(read(request), expected.map(|(role, text)| (role, text.to_owned())));
}

#[tokio::test]
async fn a_malformed_decision_is_corrected_twice_in_a_row_and_no_more() {
    let malformed = "I would look outside.";
    let fault = r#"it has no JSON object with "action" or "answer""#;
    let setup_ok = setup([
        says(malformed),
        says("{}"),
        says(ACT),
        says(malformed),
        says(malformed),
        says(ANSWER),
    ]);
    let state = setup_ok.with_tool(&look()).run().await;
    assert_eq!(
        (state.status(), state.step_count()),
        (Some(ExecutionStatus::Completed), 6)
    );

    for policy in [ErrorPolicyPreset::IgnoreToolErrors, ErrorPolicyPreset::RetryAll] {
        let setup = setup([says(malformed), says(malformed), says(malformed)]).with_policy(policy);
        let state = setup.run().await;
        assert_eq!((state.status(), state.step_count()), (Some(ExecutionStatus::Failed), 3));
        assert_eq!(state.stop_reason(), Some(StopReason::ErrorForbade));
        let errors = state.errors();
        for error in errors.iter() {
            assert_eq!(
                (error.kind, error.code.as_str()),
                (ErrorKind::Validation, "decision_malformed")
            );
            assert_eq!(error.message, format!("the model's decision can't be read: {fault}"));
        }
        assert_eq!((errors.len(), last_words(&state).as_str()), (3, malformed));
        assert!(state.stored_messages().skip(1).all(|message| message.tags.is_trace));
        let correction = format!(
            "Your last message can't be read: {fault}. Answer with exactly one JSON object as described above."
        );
        let expected = [
            (Role::User, "go"),
            (Role::Assistant, malformed),
            (Role::User, &correction),
        ];
        let request = &setup.model.requests()[1];
        assert_eq!(read(request), expected.map(|(role, text)| (role, text.to_owned())));
    }
}

#[tokio::test]
async fn an_unknown_tool_is_an_error_that_the_model_reads() {
    let setup = setup([says(r#"{"action": {"tool": "fly"}}"#), says(ANSWER)]).with_tool(&look());
    let state = setup.run().await;
    assert_eq!(state.status(), Some(ExecutionStatus::Completed));
    let observation = setup.model.requests()[1].messages[2].joined_text();
    assert!(
        observation.starts_with("Observation (error): ") && observation.contains("fly"),
        "{observation}"
    );
}

#[tokio::test]
async fn native_calls_of_a_model_that_was_offered_no_tools_are_malformed() {
    let tool = look();
    let setup = setup([asks_for(&[("c1", "look", "{}")]), says(ANSWER)]).with_tool(&tool);
    let state = setup.run().await;
    assert_eq!((state.status(), tool.begun()), (Some(ExecutionStatus::Completed), 0));
    assert_eq!(state.errors().last().unwrap().code, "decision_malformed");
}

#[tokio::test]
async fn a_decision_that_can_be_read_is_not_executed_if_the_completion_is_cut() {
    let tool = look();
    let content = vec![ContentPart::text(ACT)];
    let cut = vec![text(ACT), completed(content, FinishReason::Length, usage(10, 5))];
    let setup = setup([cut, says(ANSWER)]).with_tool(&tool);
    let state = setup.run().await;
    assert_eq!((state.status(), tool.begun()), (Some(ExecutionStatus::Completed), 0));
    let errors = state.errors();
    let error = errors.last().unwrap();
    assert_eq!(error.code, "decision_malformed");
    assert!(
        error.message.contains("the limit of output tokens cut it"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn the_response_format_is_described_and_checked() {
    let format = ResponseFormat::JsonSchema {
        name: "weather".to_owned(),
        schema: json!({"type": "object", "required": ["celsius"]}),
        strict: true,
    };
    let setup = setup([
        says(r#"{"answer": {"kelvin": 294}}"#),
        says(r#"{"answer": {"celsius": 21}}"#),
    ])
    .with_format(format);
    let state = setup.run().await;
    assert_eq!(state.final_value(), Some(&json!({"celsius": 21})));
    assert_eq!(state.final_text(), r#"{"celsius":21}"#);
    let [first, second] = &setup.model.requests()[..] else {
        panic!("two requests are made")
    };
    assert_eq!(first.response_format, ResponseFormat::Text);
    assert!(
        first
            .system
            .ends_with("It fits this JSON Schema:\n{\"required\":[\"celsius\"],\"type\":\"object\"}")
    );
    assert_eq!(read(second)[1].1, r#"{"answer":{"kelvin":294}}"#);
    assert!(read(second)[2].1.contains(r#""celsius" is a required property"#));
}

#[tokio::test]
async fn refusals_end_the_run_and_cuts_stop_it() {
    let refusal = ContentPart::Refusal {
        text: "I won't.".to_owned(),
    };
    let setup_refused = setup([vec![completed(vec![refusal], FinishReason::Stop, usage(1, 1))]]);
    let state = setup_refused.run().await;
    assert_eq!(state.status(), Some(ExecutionStatus::Completed));
    let reported = setup_refused.events.events();
    let refused = |event: &AgentEvent| matches!(event, AgentEvent::MessageDelta { refusal: true, .. });
    assert!(reported.iter().any(refused));

    let budget = budget(|budget| budget.max_tokens = Some(20));
    let long = format!(r#"{{"answer": "{}"#, "x".repeat(1_000));
    let state = setup([vec![text(&long), Beat::Hang]]).with_budget(budget).run().await;
    assert_eq!(
        (state.status(), state.step_count()),
        (Some(ExecutionStatus::Stopped), 1)
    );
    assert_eq!(transcript(&state), ["user: go"], "a part of a decision says nothing");
}

#[tokio::test]
async fn a_run_cancelled_at_any_event_leaves_a_history_that_any_driver_continues() {
    let tool = look();
    let story = || setup([says(ACT), says("no decision"), says(ANSWER)]).with_tool(&tool);
    let whole = story();
    whole.run().await;
    let events = whole.events.names().len();
    assert!(events > 15, "{events}");
    for at in 1..events {
        let setup = story();
        let cancellation = setup.cancellation.clone();
        setup.events.at(at, move || cancellation.cancel());
        let state = setup.run().await;
        let is_answered = state.final_text() == "Sunny.";
        let expected = if is_answered {
            ExecutionStatus::Completed
        } else {
            ExecutionStatus::Stopped
        };
        assert_eq!(state.status(), Some(expected), "cancelled at {at}");
        let calling = Setup::new([says("again")]).with_tool(&tool);
        let state = calling.run_from(state, "and?").await;
        assert_eq!(state.final_text(), "again", "cancelled at {at}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A completion that is no decision never completes a run.
    #[test]
    fn garbage_never_completes_silently(
        garbage in prop::collection::vec("(\\{|\\}|\\[|\\]|\"|:|,|```|\"thought\"|\"action\"|\"tool\"|[ a-z\n]){0,40}", 3),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let words: Vec<_> = garbage.iter().map(|words| says(words)).collect();
        let tool = look();
        let setup = Setup::of_model(FakeModel::new(words)).with_driver(DriverKind::React).with_tool(&tool);
        let state = runtime.block_on(async {
            let budget = budget(|budget| budget.max_steps = Some(3));
            setup.with_budget(budget).run().await
        });
        // Without an answer the run ends by an error, or by its steps where an action happened to
        // be readable.
        prop_assert_ne!(state.status(), Some(ExecutionStatus::Completed));
        let acted = state.steps().any(AgentStep::has_tool_calls);
        prop_assert!(acted || state.status() == Some(ExecutionStatus::Failed));
    }
}

#[tokio::test]
async fn a_stopped_execution_is_continued_with_the_same_prefix() {
    let act = || says(ACT);
    let setup = setup([act(), says("no decision"), act(), says(ANSWER)]).with_tool(&look());
    let setup = setup.with_budget(budget(|budget| budget.max_steps = Some(3)));
    let state = setup.run().await;
    assert_eq!(state.stop_reason(), Some(StopReason::StepsLimitReached));
    let state = setup.run_from(state, "go on").await;
    assert_eq!(state.final_text(), "Sunny.");
    let requests = setup.model.requests();
    let (last, next) = (read(&requests[2]), read(&requests[3]));
    assert_eq!(last.len(), 5, "{last:?}");
    assert_eq!(last[3].1, "no decision");
    assert_eq!(next[..5], last[..]);
    assert_eq!(next.len(), 8, "{next:?}");
    assert_eq!(next[7], (Role::User, "go on".to_owned()));
}
