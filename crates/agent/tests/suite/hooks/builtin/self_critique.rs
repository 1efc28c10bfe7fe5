//! `self_critique`: rounds, what the critic reads, what it costs, and a critic that fails.

use agent::hooks::{HookError, HookSubject};
use agent::ports::ModelErrorClass;
use agent::state::{AgentState, ExecutionStatus, FinishReason, StopReason};
use agent::{AgentEvent, HookPoint};
use serde_json::json;
use test_support::fake_model::{Beat, asks_for, completed, says, text, usage};
use test_support::fake_tool::{Behaviour, FakeTool};
use values::json::Value;
use values::message::{ContentPart, Role};

use crate::hooks::probe::Probe;
use crate::setup::{Setup, budget, transcript};

const GOOD: &str = r#"{"good": true}"#;
const POOR: &str = r#"{"good": false, "critique": "too short"}"#;
const SENT_BACK: &str = "user: Your answer was reviewed and does not meet the criteria yet: too short\n\nGive the whole answer again, improved.";

fn critic(answers: impl IntoIterator<Item = Vec<Beat>>, max_rounds: u32) -> Setup {
    Setup::new(answers).with_attached(
        "self_critique",
        json!({"criteria": "It rhymes.", "max_rounds": max_rounds}),
    )
}

fn warnings(setup: &Setup) -> Vec<String> {
    let events = setup.events.events().into_iter();
    let warned = events.filter_map(|event| match event {
        AgentEvent::HookWarned {
            hook,
            message,
            step_number,
        } => Some(format!("{step_number} {hook}: {message}")),
        _ => None,
    });
    warned.collect()
}

#[tokio::test(start_paused = true)]
async fn a_good_completion_stands() {
    let setup = critic([says("roses"), says(GOOD)], 5);
    let state = setup.run().await;
    assert_eq!(
        (state.status(), state.final_text().as_str()),
        (Some(ExecutionStatus::Completed), "roses")
    );
    assert_eq!(transcript(&state), ["user: go", "assistant: roses"]);
    assert!(state.stored_messages().all(|message| !message.tags.is_trace));
    assert!(warnings(&setup).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_poor_completion_is_sent_back_until_it_is_good_or_the_rounds_are_spent() {
    for (max_rounds, answers, steps, conversation) in [
        (
            5,
            vec![
                says("a"),
                says(POOR),
                says("a b"),
                says(POOR),
                says("a b c"),
                says(GOOD),
            ],
            3,
            vec![
                "user: go",
                "assistant: a",
                SENT_BACK,
                "assistant: a b",
                SENT_BACK,
                "assistant: a b c",
            ],
        ),
        (
            1,
            vec![says("a"), says(POOR), says("a b")],
            2,
            vec!["user: go", "assistant: a", SENT_BACK, "assistant: a b"],
        ),
    ] {
        let requests = answers.len();
        let setup = critic(answers, max_rounds);
        let state = setup.run().await;
        assert_eq!(transcript(&state), conversation, "{max_rounds}");
        assert_eq!((state.step_count(), setup.model.requests().len()), (steps, requests));
        assert_eq!(state.status(), Some(ExecutionStatus::Completed));
        // Only the last answer is more than a trace.
        let lasting: Vec<_> = state
            .stored_messages()
            .filter(|message| !message.tags.is_trace)
            .collect();
        assert_eq!(lasting.len(), 2, "{max_rounds}");
        // Every call is counted: those of the steps, and those of the critic beside them.
        assert_eq!(state.usage().total_tokens, 15 * requests as u64);
        assert_eq!(
            state.execution().unwrap().hook_usage,
            (0..requests - steps).map(|_| usage(10, 5)).sum()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn rounds_belong_to_one_execution() {
    let setup = critic([says("a"), says(POOR), says("b"), says("c"), says(POOR), says("d")], 1);
    let state = setup.run().await;
    let state = setup.run_from(state, "again").await;
    assert_eq!(state.final_text(), "d");
    assert_eq!(setup.model.requests().len(), 6);
    // A resumed execution goes on counting: the count is in its messages.
    let json = serde_json::to_value(&state).unwrap();
    assert_eq!(json["execution"]["hook_usage"]["total_tokens"], 15);
    let restored: AgentState = serde_json::from_value(json).unwrap();
    assert_eq!(restored.usage(), state.usage());
}

#[tokio::test(start_paused = true)]
async fn the_critic_reads_the_task_the_completion_and_the_criteria_without_events() {
    let echo = FakeTool::new("echo", Behaviour::EchoArguments);
    let answers = [
        says("old"),
        says(GOOD),
        asks_for(&[("c1", "echo", "{}")]),
        says("roses"),
        says(GOOD),
    ];
    let setup = critic(answers, 1).with_tool(&echo);
    let state = setup.run().await;
    let state = setup.run_from(state, "A poem, please.").await;
    assert_eq!(state.final_text(), "roses");
    let requests = setup.model.requests();
    let asked = requests.last().unwrap();
    assert!(asked.system.contains("It rhymes."), "{}", asked.system);
    assert!(asked.tools.is_empty());
    assert_eq!(asked.max_output_tokens, Some(1_000));
    let messages = asked.messages.to_vec();
    let [message] = &*messages else { panic!("{asked:?}") };
    assert_eq!(message.role, Role::User);
    assert_eq!(
        message.joined_text(),
        "<task>\nA poem, please.\n</task>\n\n<answer>\nroses\n</answer>"
    );
    let emitted = setup.events.events().into_iter().filter_map(|event| match event {
        AgentEvent::MessageDelta { text, .. } => Some(text),
        _ => None,
    });
    assert_eq!(emitted.collect::<Vec<_>>(), ["old", "roses"]);
    let names = setup.events.names();
    let count = |wanted: &str| names.iter().filter(|name| *name == wanted).count();
    assert_eq!((count("model.requested"), count("model.responded")), (5, 5));
}

#[tokio::test(start_paused = true)]
async fn a_critic_that_fails_costs_no_completion_and_warns() {
    let cut = vec![text("half"), Beat::Fail(ModelErrorClass::Server, "broken pipe")];
    for (reply, warning) in [
        (
            vec![Beat::Fail(ModelErrorClass::Overload, "busy")],
            "1 self_critique: the answer is not judged: the model failed: busy",
        ),
        (
            cut,
            "1 self_critique: the answer is not judged: the model failed: broken pipe",
        ),
        (
            says("It is fine."),
            "1 self_critique: the answer is not judged: the critic's reply is no verdict",
        ),
        (
            vec![completed(Vec::new(), FinishReason::ContentFilter, usage(10, 0))],
            "1 self_critique: the answer is not judged: the answer is not complete: the provider's filter cut it",
        ),
    ] {
        let setup = critic([says("roses"), reply], 2);
        let state = setup.run().await;
        assert_eq!(
            (state.status(), state.final_text().as_str()),
            (Some(ExecutionStatus::Completed), "roses")
        );
        assert!(state.errors().is_empty());
        assert_eq!(warnings(&setup), [warning]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_critic_obeys_what_bounds_the_execution() {
    let spent = budget(|budget| budget.max_tokens = Some(15));
    let setup = critic([says("roses")], 1).with_budget(spent);
    let state = setup.run().await;
    assert_eq!(state.status(), Some(ExecutionStatus::Completed));
    assert_eq!(
        warnings(&setup),
        ["1 self_critique: the answer is not judged: the tokens are spent: max_tokens is 15"]
    );

    let seconds = budget(|budget| budget.max_seconds = Some(2.0));
    let setup = critic([says("roses"), vec![text("{"), Beat::Hang]], 1).with_budget(seconds);
    let state = setup.run().await;
    assert_eq!(
        (state.status(), state.final_text().as_str()),
        (Some(ExecutionStatus::Completed), "roses")
    );
    assert_eq!(
        warnings(&setup),
        ["1 self_critique: the answer is not judged: the time is spent: max_seconds is 2.0"]
    );
    assert_eq!(setup.elapsed(&state).num_milliseconds(), 2_000);
    assert!(
        state.execution().unwrap().hook_usage.total_tokens > 0,
        "what was cut is counted"
    );
}

#[tokio::test(start_paused = true)]
async fn a_completion_that_another_hook_ends_or_that_is_not_final_is_not_judged() {
    let ended = |reason| completed(vec![ContentPart::text("a")], reason, usage(1, 1));
    for (answer, others) in [
        (vec![ended(FinishReason::Length)], None),
        (vec![ended(FinishReason::Refusal)], None),
        (vec![ended(FinishReason::ContentFilter)], None),
        (vec![completed(Vec::new(), FinishReason::Stop, usage(1, 1))], None),
        (says("a"), Some(("finish_reason", json!({"stop_on": ["stop"]})))),
        (vec![Beat::Fail(ModelErrorClass::Server, "no")], None),
    ] {
        let mut setup = Setup::new([answer]);
        if let Some((name, config)) = others {
            setup = setup.with_attached(name, config);
        }
        let setup = setup.with_attached("self_critique", json!({"criteria": "c"}));
        let state = setup.run().await;
        assert_eq!(setup.model.requests().len(), 1, "{:?}", state.stop_reason());
    }
}

#[tokio::test(start_paused = true)]
async fn the_critic_s_reply_passes_the_hooks_around_requests() {
    let redaction = json!({"patterns": [{"name": "key", "regex": "sk-[0-9]+", "replacement": "[key]"}]});
    let poor = r#"{"good": false, "critique": "do not say sk-123"}"#;
    let setup = critic([says("roses"), says(poor), says("better")], 1).with_attached("redaction", redaction);
    let state = setup.run_from(setup.new_state(), "my key is sk-123").await;
    let json: Value = serde_json::to_value(&state).unwrap();
    assert!(!json.to_string().contains("sk-123"), "{json:#}");
    assert!(json.to_string().contains("do not say [key]"), "{json:#}");
    assert!(!format!("{:?}", setup.model.requests()).contains("sk-123"));
    assert_eq!(state.stop_reason(), Some(StopReason::Completed));
}

#[tokio::test(start_paused = true)]
async fn a_critique_stays_counted_when_a_hook_fails_on_it() {
    let fails = Probe::at(HookPoint::AfterModelRequest, |context| match &context.subject {
        HookSubject::Response(response) if response.content == [ContentPart::text(GOOD)] => Err(HookError::new("no")),
        _ => Ok(context),
    });
    let setup = critic([says("roses"), says(GOOD)], 5).with_hook(fails);
    let state = setup.run().await;
    assert_eq!(state.status(), Some(ExecutionStatus::Failed));
    assert_eq!(state.usage(), usage(20, 10));
    assert_eq!(setup.control().unwrap().spent(), usage(20, 10));
}

#[tokio::test(start_paused = true)]
async fn a_completion_that_no_step_may_follow_is_not_judged() {
    let one_step = budget(|budget| budget.max_steps = Some(1));
    let setup = critic([says("roses")], 1).with_budget(one_step);
    let state = setup.run().await;
    assert_eq!(state.status(), Some(ExecutionStatus::Completed));
    assert_eq!(setup.model.requests().len(), 1);
    assert!(warnings(&setup).is_empty());
}
