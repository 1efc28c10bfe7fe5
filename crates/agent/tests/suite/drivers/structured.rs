//! Response formats: how models of each kind are asked, what is corrected, and what is not.

use std::time::Duration;

use agent::AgentEvent;
use agent::definition::ErrorPolicyPreset;
use agent::ports::{ModelErrorClass, StructuredOutput};
use agent::state::{AgentState, AgentStep, AgentStepType, ExecutionStatus, FinishReason, StopReason};
use serde_json::json;
use test_support::fake_model::{Beat, FakeModel, asks_for, completed, says, text, usage};
use test_support::fake_tool::{Behaviour, FakeTool};
use values::json::Value;
use values::message::ContentPart;
use values::model_ref::ResponseFormat;

use crate::setup::{Setup, assert_ended, budget, transcript};

const GOOD: &str = r#"{"celsius": 21}"#;
const BAD: &str = r#"{"celsius": "warm"}"#;
const MISFIT: &str = r#"the answer does not fit its shape: /celsius: "warm" is not of type "number""#;

fn schema() -> Value {
    json!({"type": "object", "properties": {"celsius": {"type": "number"}}, "required": ["celsius"]})
}

fn weather() -> ResponseFormat {
    ResponseFormat::JsonSchema {
        name: "weather".to_owned(),
        schema: schema(),
        strict: true,
    }
}

fn setup(answers: impl IntoIterator<Item = Vec<Beat>>) -> Setup {
    Setup::new(answers).with_format(weather())
}

fn by(by: StructuredOutput, answers: impl IntoIterator<Item = Vec<Beat>>) -> Setup {
    Setup::of_model(FakeModel::structured_by(by, answers)).with_format(weather())
}

/// Why the execution failed, by the last error.
fn failure(state: &AgentState) -> (Option<ExecutionStatus>, Option<StopReason>, String, String) {
    let error = state.errors().last().cloned().unwrap();
    (state.status(), state.stop_reason(), error.code, error.message)
}

/// All words that listeners heard.
fn emitted(setup: &Setup) -> String {
    let words = setup.events.events().into_iter().filter_map(|event| match event {
        AgentEvent::MessageDelta { text, .. } => Some(text),
        _ => None,
    });
    words.collect()
}

#[tokio::test]
async fn each_kind_of_model_is_asked_in_its_own_way() {
    let tool = FakeTool::new("look", Behaviour::Answer("sunny".to_owned()));
    for (kind, answer) in [
        (StructuredOutput::Native, says(GOOD)),
        (StructuredOutput::Tool, asks_for(&[("c1", "weather", GOOD)])),
        (StructuredOutput::Prompt, says(GOOD)),
    ] {
        let setup = by(kind, [asks_for(&[("c0", "look", "{}")]), answer]).with_tool(&tool);
        let state = setup.new_state().with_system_prompt("Be brief.\n");
        let state = setup.run_from(state, "go").await;
        assert_eq!(state.status(), Some(ExecutionStatus::Completed), "{kind:?}");
        assert_eq!(state.final_value(), Some(&json!({"celsius": 21})), "{kind:?}");
        assert_eq!(
            (state.final_text().as_str(), emitted(&setup).as_str()),
            (GOOD, GOOD),
            "{kind:?}"
        );
        for request in setup.model.requests() {
            let tools: Vec<_> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
            let added = request.system.strip_prefix("Be brief.\n").unwrap();
            let by_tool = "\nWhen the work is done, give the final answer by calling the tool weather.";
            let by_prompt = format!(
                "\nGive the final answer as one JSON object, with nothing before or after it. It fits this JSON Schema:\n{}",
                schema()
            );
            match kind {
                StructuredOutput::Native => {
                    assert_eq!((request.response_format, tools, added), (weather(), vec!["look"], ""));
                }
                StructuredOutput::Tool => {
                    assert_eq!(request.tools[1].parameters, schema());
                    let expected = (ResponseFormat::Text, vec!["look", "weather"], by_tool);
                    assert_eq!((request.response_format, tools, added), expected);
                }
                StructuredOutput::Prompt => {
                    let expected = (ResponseFormat::Text, vec!["look"], by_prompt.as_str());
                    assert_eq!((request.response_format, tools, added), expected);
                }
            }
        }
    }
    assert_eq!(tool.begun(), 3, "the call that is the answer is not executed");
}

#[tokio::test]
async fn any_object_is_also_a_format() {
    for (kind, answer) in [
        (StructuredOutput::Native, says("{}")),
        (StructuredOutput::Tool, asks_for(&[("c1", "answer", "")])),
        (StructuredOutput::Prompt, says("```json\n{}\n```")),
    ] {
        let setup = by(kind, [says("[]"), answer]).with_format(ResponseFormat::JsonObject);
        let state = setup.run().await;
        assert_eq!(state.final_value(), Some(&json!({})), "{kind:?}");
        let wrong = &state.steps().next().unwrap().errors.last().unwrap().message;
        assert_eq!(wrong, "the answer does not fit its shape: it is not a JSON object");
    }
}

#[tokio::test]
async fn the_tool_for_the_final_response_never_takes_the_name_of_another() {
    let tools = ["weather", "weather_2"].map(|name| FakeTool::new(name, Behaviour::Answer("sunny".to_owned())));
    let answers = [
        asks_for(&[("c0", "weather", "{}")]),
        asks_for(&[("c1", "weather_3", GOOD)]),
    ];
    let setup = by(StructuredOutput::Tool, answers)
        .with_tool(&tools[0])
        .with_tool(&tools[1]);
    let state = setup.run().await;
    assert_eq!(state.final_value(), Some(&json!({"celsius": 21})));
    assert_eq!((tools[0].begun(), tools[1].begun()), (1, 0));
}

#[tokio::test]
async fn the_tool_for_the_final_response_has_a_name_that_providers_take() {
    let longest = "w".repeat(64);
    let numbered = format!("{}_2", "w".repeat(62));
    let taken = FakeTool::new(&longest, Behaviour::Answer("sunny".to_owned()));
    let setup = by(StructuredOutput::Tool, [asks_for(&[("c0", &numbered, GOOD)])]).with_tool(&taken);
    let setup = setup.with_format(ResponseFormat::JsonSchema {
        name: longest.clone(),
        schema: schema(),
        strict: true,
    });
    let state = setup.run().await;
    assert_eq!(state.final_value(), Some(&json!({"celsius": 21})));
    let names: Vec<_> = setup.model.requests()[0]
        .tools
        .iter()
        .map(|tool| tool.name.clone())
        .collect();
    assert_eq!(names, [longest, numbered]);
}

#[tokio::test]
async fn a_final_call_beside_other_calls_is_too_early_and_text_beside_it_is_no_part_of_the_response() {
    let tool = FakeTool::new("look", Behaviour::Answer("sunny".to_owned()));
    let early = asks_for(&[("c0", "weather", r#"{"celsius": 0}"#), ("c1", "look", "{}")]);
    let mut late = vec![text("Here it is:")];
    late.extend(asks_for(&[("c2", "weather", GOOD)]));
    let Some(Beat::Event(agent::ports::ModelEvent::Completed(response))) = late.last_mut() else {
        panic!("an answer ends with its response")
    };
    response.content.insert(0, ContentPart::text("Here it is:"));
    let setup = by(StructuredOutput::Tool, [early, late]).with_tool(&tool);
    let state = setup.run().await;
    assert_eq!(
        transcript(&state),
        [
            "user: go",
            r#"assistant: {"celsius": 0} call c1"#,
            "tool: result c1",
            &format!("assistant: {GOOD}"),
        ]
    );
    assert_eq!(state.final_value(), Some(&json!({"celsius": 21})));
    let reasons = state.steps().map(|step| step.response.clone().unwrap().finish_reason);
    assert_eq!(
        reasons.collect::<Vec<_>>(),
        [FinishReason::ToolCalls, FinishReason::Stop]
    );
    assert_eq!(emitted(&setup), format!(r#"{{"celsius": 0}}{GOOD}"#));
    assert_eq!(tool.begun(), 1);
}

#[tokio::test]
async fn a_completion_that_does_not_fit_is_corrected_in_visible_steps() {
    let setup = setup([says(BAD), says("Sorry."), says(GOOD)]);
    let state = setup.run().await;
    assert_eq!(state.status(), Some(ExecutionStatus::Completed));
    assert_eq!(state.final_value(), Some(&json!({"celsius": 21})));
    let steps: Vec<_> = state.steps().map(AgentStep::step_type).collect();
    let expected = [AgentStepType::Error, AgentStepType::Error, AgentStepType::FinalResponse];
    assert_eq!(steps, expected);
    let codes: Vec<_> = state.errors().iter().map(|error| error.code.clone()).collect();
    assert_eq!(codes, ["answer_invalid", "answer_invalid"]);
    let traces: Vec<_> = state.stored_messages().map(|message| message.tags.is_trace).collect();
    assert_eq!(traces, [false, true, true, true, true, false]);
    let read = &setup.model.requests()[1].messages;
    assert_eq!(
        read[2].joined_text(),
        r#"Your answer does not fit its shape: /celsius: "warm" is not of type "number". Give the whole answer again, corrected."#
    );
}

#[tokio::test]
async fn the_last_correction_that_fails_fails_the_run_under_every_policy() {
    for policy in [ErrorPolicyPreset::StopOnAnyError, ErrorPolicyPreset::RetryAll] {
        let setup = setup([says(BAD), says(BAD), says(BAD)]).with_policy(policy);
        let state = setup.run().await;
        let expected = (
            Some(ExecutionStatus::Failed),
            Some(StopReason::ErrorForbade),
            "answer_invalid".to_owned(),
            MISFIT.to_owned(),
        );
        assert_eq!(failure(&state), expected, "{policy:?}");
        assert_eq!((state.final_value(), state.step_count()), (None, 3));
        assert_eq!(transcript(&state).len(), 6, "the state keeps everything");
    }
}

#[tokio::test]
async fn corrections_are_counted_over_the_whole_execution() {
    let tool = FakeTool::new("look", Behaviour::Answer("sunny".to_owned()));
    let look = || asks_for(&[("c0", "look", "{}")]);
    let setup = setup([says(BAD), look(), says(BAD), look(), says(BAD)]).with_tool(&tool);
    let state = setup.run().await;
    assert_eq!((state.status(), state.step_count()), (Some(ExecutionStatus::Failed), 5));
}

#[tokio::test]
async fn no_correction_exceeds_the_steps() {
    let budget = budget(|budget| budget.max_steps = Some(2));
    let setup = setup([says(BAD), says(BAD)]).with_budget(budget);
    let state = setup.run().await;
    assert_eq!(failure(&state).2, "answer_invalid");
    assert_eq!((state.status(), state.step_count()), (Some(ExecutionStatus::Failed), 2));
}

#[tokio::test]
async fn refusals_are_final_and_completions_that_were_cut_are_not_corrected() {
    let refusal = ContentPart::Refusal {
        text: "I won't.".to_owned(),
    };
    for reason in [FinishReason::Stop, FinishReason::Refusal] {
        let state = setup([vec![completed(vec![refusal.clone()], reason, usage(1, 1))]])
            .run()
            .await;
        assert_eq!(
            (state.status(), state.final_value()),
            (Some(ExecutionStatus::Completed), None)
        );
        assert!(state.errors().is_empty());
    }
    for (reason, cause) in [
        (FinishReason::Length, "the limit of output tokens"),
        (FinishReason::ContentFilter, "the provider's filter"),
    ] {
        for words in [r#"{"celsius": 2"#, GOOD] {
            let cut = completed(vec![ContentPart::text(words)], reason.clone(), usage(1, 1));
            let state = setup([vec![cut]]).with_policy(ErrorPolicyPreset::RetryAll).run().await;
            let (status, _, code, message) = failure(&state);
            assert_eq!(
                (status, code.as_str(), message),
                (
                    Some(ExecutionStatus::Failed),
                    "answer_incomplete",
                    format!("the answer is not complete: {cause} cut it")
                )
            );
        }
    }
}

#[tokio::test]
async fn a_completion_that_a_budget_cuts_is_stopped_and_has_no_value() {
    let budget = budget(|budget| budget.max_tokens = Some(20));
    let long = "x".repeat(1_000);
    let setup = setup([vec![text(&long), Beat::Hang]]).with_budget(budget);
    let state = setup.run().await;
    assert_ended(&state, ExecutionStatus::Stopped, StopReason::TokenLimitReached);
    assert_eq!(state.final_value(), None);
    assert!(state.errors().is_empty());
}

#[tokio::test]
async fn a_fallback_is_asked_in_its_own_way() {
    let fallback = FakeModel::structured_by(StructuredOutput::Tool, [asks_for(&[("c1", "weather", GOOD)])]);
    let broken = vec![Beat::Fail(ModelErrorClass::Server, "down")];
    let setup = by(StructuredOutput::Prompt, [broken]).with_fallback("fake/two", &fallback, None);
    let state = setup.run().await;
    assert_eq!(state.final_value(), Some(&json!({"celsius": 21})));
    let (first, second) = (&setup.model.requests()[0], &fallback.requests()[0]);
    assert!(first.tools.is_empty() && first.system.contains("JSON Schema"));
    assert_eq!(second.tools[0].name, "weather");
    assert!(!second.system.contains("JSON Schema"));
}

#[tokio::test]
async fn text_of_a_failed_model_is_not_emitted_after_a_fallback() {
    let fallback = FakeModel::structured_by(StructuredOutput::Native, [says(GOOD)]);
    let broken = vec![text("half an"), Beat::Fail(ModelErrorClass::Server, "down")];
    let setup = by(StructuredOutput::Tool, [broken]).with_fallback("fake/two", &fallback, None);
    let state = setup.run().await;
    assert_eq!(state.status(), Some(ExecutionStatus::Completed));
    assert_eq!(emitted(&setup), GOOD);
}

#[tokio::test]
async fn a_format_that_no_completion_could_follow_calls_no_model() {
    let format = ResponseFormat::JsonSchema {
        name: "a".to_owned(),
        schema: json!({"type": "array"}),
        strict: false,
    };
    let setup = Setup::new([]).with_format(format);
    let state = setup.run().await;
    let (status, _, code, message) = failure(&state);
    assert_eq!(
        (status, code.as_str()),
        (Some(ExecutionStatus::Failed), "response_format_invalid")
    );
    assert_eq!(message, r#"the schema must have "type": "object""#);
}

#[test]
fn the_time_limit_cuts_the_check_of_a_completion() {
    let budget = budget(|budget| budget.max_seconds = Some(60.0));
    // Work beside the async workers is done by one thread here, so that other work holds the check
    // up.
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
    let state = runtime.block_on(async {
        let setup = setup([says(GOOD)]).with_budget(budget);
        let (release, held) = std::sync::mpsc::channel::<()>();
        // The answer is whole, and not checked yet.
        setup.events.at(5, move || {
            tokio::task::spawn_blocking(move || held.recv());
            tokio::time::pause();
        });
        let passing = async {
            setup.events.until_emitted("model.responded").await;
            // Timers end at whole milliseconds, and the clock stands between two.
            tokio::time::advance(Duration::from_mins(1) + Duration::from_millis(1)).await;
            setup.events.until_emitted("execution.ended").await;
            drop(release);
        };
        tokio::join!(setup.run(), passing).0
    });
    assert_ended(&state, ExecutionStatus::Stopped, StopReason::TimeLimitReached);
    assert_eq!((state.final_text().as_str(), state.final_value()), (GOOD, None));
    assert!(state.errors().is_empty());
}
