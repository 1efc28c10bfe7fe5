//! Open steps and their answers: what hooks see and decide, and a process that dies in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent::HookPoint;
use agent::answers::{AnswerRules, AnsweredStep, ResolvedAnswer};
use agent::hooks::{HookContext, HookSubject};
use agent::journal::Progress;
use agent::ports::{ToolDecision, ToolUse};
use agent::state::{AgentContext, AgentState, ExecutionStatus, StopReason, StopSignal};
use serde_json::json;
use test_support::fake_model::{asks_for, says};
use test_support::fake_tool::{Behaviour, FakeTool};
use values::clock::Clock as _;
use values::message::{ContentPart, joined_text};
use values::session::WaitingStep;

use super::hooks::probe::Probe;
use super::setup::{Setup, transcript};
use crate::memory_journal::{Break, MemoryJournal};
use crate::setup::assert_ended;

/// The calls of `shell` need an approval; `ask` is executed by the caller.
fn rules() -> AnswerRules {
    let rules = json!([{"tools": ["shell"], "approval": "always"}]);
    AnswerRules {
        approvals: vec![serde_json::from_value::<Vec<_>>(rules).unwrap().into()],
        client_tools: serde_json::from_value::<Vec<_>>(json!([{"name": "ask"}]))
            .unwrap()
            .into(),
        ..AnswerRules::default()
    }
}

/// An agent that calls `echo`, `shell` and `ask` at once, and ends with their results.
fn setup(echo: &Arc<FakeTool>, shell: &Arc<FakeTool>) -> Setup {
    let calls = [
        ("c1", "echo", "{}"),
        ("c2", "shell", r#"{"note": "model"}"#),
        ("c3", "ask", "{}"),
    ];
    let ask = FakeTool::new("ask", Behaviour::PanicLater);
    Setup::new([asks_for(&calls), says("done")])
        .with_answers(rules())
        .with_tool(echo)
        .with_tool(shell)
        .with_tool(&ask)
}

fn tools() -> (Arc<FakeTool>, Arc<FakeTool>) {
    let new = |name| FakeTool::new(name, Behaviour::EchoArguments);
    (new("echo"), new("shell"))
}

/// Returns the state that continues a waiting one, and its open step.
fn next(state: &AgentState) -> (AgentState, Arc<WaitingStep>) {
    assert_ended(state, ExecutionStatus::Waiting, StopReason::AnswerRequired);
    let waiting = Arc::clone(state.context().waiting.as_ref().unwrap());
    let context = AgentContext {
        waiting: None,
        ..state.context().clone()
    };
    let next = AgentState::new(state.agent_id(), state.created_at());
    let next = next.restored(state.created_at(), state.updated_at(), state.execution_count(), context);
    (next, waiting)
}

fn approved_and_answered() -> Vec<ResolvedAnswer> {
    vec![
        ResolvedAnswer::Approved,
        ResolvedAnswer::Result {
            content: vec![ContentPart::text("the user's word")],
            is_error: false,
        },
    ]
}

fn answered(waiting: &WaitingStep, answers: Vec<ResolvedAnswer>) -> AnsweredStep {
    AnsweredStep::new(waiting, answers).unwrap()
}

/// The texts of the results that the model has read.
fn results(state: &AgentState) -> Vec<String> {
    let messages = state.stored_messages();
    let results = messages.flat_map(|message| message.tool_results());
    results.map(|result| joined_text(&result.content)).collect()
}

#[tokio::test(start_paused = true)]
async fn the_hooks_before_a_call_decide_before_the_caller_does() {
    let (echo, shell) = tools();
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let setup = setup(&echo, &shell).with_hook(Probe::changing(HookPoint::BeforeToolUse, move |context| {
        count.fetch_add(1, Ordering::SeqCst);
        let subject = match context.subject {
            HookSubject::ToolUse(mut tool_use) if tool_use.call.name == "shell" => {
                tool_use.call.arguments = r#"{"note":"hook"}"#.to_owned();
                HookSubject::ToolUse(tool_use)
            }
            subject => subject,
        };
        HookContext { subject, ..context }
    }));
    let state = setup.run().await;
    assert_eq!(transcript(&state), ["user: go"]);
    let (state, waiting) = next(&state);
    // The caller approves what the tool will get.
    assert_eq!(waiting.open_calls[0].arguments, json!({"note": "hook"}));
    let state = setup
        .answer(state, &[], answered(&waiting, approved_and_answered()))
        .await;
    assert_eq!(results(&state), ["{}", r#"{"note":"hook"}"#, "the user's word"]);
    assert_eq!(seen.load(Ordering::SeqCst), 3, "each call is decided about once");
    assert_eq!((echo.begun(), shell.begun()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_a_hook_decides_needs_nobody() {
    let (echo, shell) = tools();
    let setup = setup(&echo, &shell).with_hook(Probe::changing(HookPoint::BeforeToolUse, |context| {
        let subject = match context.subject {
            HookSubject::ToolUse(tool_use) => HookSubject::ToolUse(ToolUse {
                decision: ToolDecision::block("never"),
                ..tool_use
            }),
            subject => subject,
        };
        HookContext { subject, ..context }
    }));
    let state = setup.run().await;
    assert_eq!(state.status(), Some(ExecutionStatus::Completed));
    assert_eq!(results(&state), ["never", "never", "never"]);
}

#[tokio::test(start_paused = true)]
async fn the_hooks_before_an_edited_call_decide_about_the_new_arguments() {
    let (echo, shell) = tools();
    let setup = setup(&echo, &shell).with_hook(Probe::changing(HookPoint::BeforeToolUse, |context| {
        let subject = match context.subject {
            HookSubject::ToolUse(tool_use) if tool_use.call.arguments.contains("evil") => {
                HookSubject::ToolUse(ToolUse {
                    decision: ToolDecision::block("not this"),
                    ..tool_use
                })
            }
            subject => subject,
        };
        HookContext { subject, ..context }
    }));
    let (state, waiting) = next(&setup.run().await);
    let edited = json!({"note": "evil"}).as_object().unwrap().clone();
    let mut answers = approved_and_answered();
    answers[0] = ResolvedAnswer::Edited(edited);
    let state = setup.answer(state, &[], answered(&waiting, answers)).await;
    assert_eq!(results(&state)[1], "not this");
    assert_eq!(shell.begun(), 0);
}

#[tokio::test(start_paused = true)]
async fn hooks_see_every_result_once_and_the_step_when_it_ends() {
    let (echo, shell) = tools();
    let (calls, steps) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counting = |point, count: &Arc<AtomicUsize>| {
        let count = Arc::clone(count);
        Probe::changing(point, move |context| {
            count.fetch_add(1, Ordering::SeqCst);
            context
        })
    };
    let redacted = Probe::changing(HookPoint::AfterToolUse, |mut context| {
        if let HookSubject::ToolExecution(execution) = &mut context.subject
            && execution.call.name == "ask"
        {
            execution.content = vec![ContentPart::text("[redacted]")];
        }
        context
    });
    let setup = setup(&echo, &shell)
        .with_hook(counting(HookPoint::AfterToolUse, &calls))
        .with_hook(counting(HookPoint::AfterStep, &steps).named("steps"))
        .with_hook(redacted.named("redacted"));
    let state = setup.run().await;
    let counted = || (calls.load(Ordering::SeqCst), steps.load(Ordering::SeqCst));
    assert_eq!(counted(), (1, 0));
    let (state, waiting) = next(&state);
    let state = setup
        .answer(state, &["and then?"], answered(&waiting, approved_and_answered()))
        .await;
    assert_eq!(counted(), (3, 2));
    assert_eq!(results(&state)[2], "[redacted]");
    assert_eq!(
        transcript(&state),
        [
            "user: go",
            "assistant: call c1 call c2 call c3",
            "tool: result c1 result c2 result c3",
            "user: and then?",
            "assistant: done"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_execution_that_is_stopped_before_it_begins_executes_no_approved_call() {
    let (echo, shell) = tools();
    let runs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&runs);
    let setup = setup(&echo, &shell);
    let clock = setup.clock;
    let setup = setup.with_hook(Probe::changing(HookPoint::BeforeExecution, move |context| {
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            return context;
        }
        let signal = StopSignal::new(StopReason::StopRequested, "probe", "not today");
        let state = context.state.with_stop_signal(signal, clock.now());
        HookContext { state, ..context }
    }));
    let (state, waiting) = next(&setup.run().await);
    let state = setup
        .answer(state, &["hello?"], answered(&waiting, approved_and_answered()))
        .await;
    assert_eq!((state.status(), shell.begun()), (Some(ExecutionStatus::Stopped), 0));
    let read = results(&state);
    assert_eq!(read[1], "The run ended before this tool was called.");
    assert_eq!(read[2], "the user's word");
    assert_eq!(transcript(&state)[3], "user: hello?");
}

/// A process dies at each entry of the journal. Another one ends the execution as the first one
/// would have.
#[tokio::test(start_paused = true)]
async fn an_answered_step_is_taken_over_at_any_entry() {
    let (echo, shell) = tools();
    let first = setup(&echo, &shell);
    let (begun, waiting) = next(&first.run().await);
    let edited = json!({"note": "caller"}).as_object().unwrap().clone();
    let mut answers = approved_and_answered();
    answers[0] = ResolvedAnswer::Edited(edited);
    let answers = || answers.clone();
    let new_setup = |journal: Arc<MemoryJournal>| {
        let tool = |name| FakeTool::idempotent(name, Behaviour::EchoArguments);
        let (echo, shell) = (tool("echo"), tool("shell"));
        let setup = Setup::new([says("done"), says("done")]).with_answers(rules());
        setup.with_tool(&echo).with_tool(&shell).with_journal(journal)
    };
    let whole = MemoryJournal::new();
    let base = new_setup(Arc::clone(&whole));
    let ended = base
        .answer(begun.clone(), &["next"], answered(&waiting, answers()))
        .await;
    let expected = transcript(&ended);
    assert_eq!(expected.len(), 5, "{expected:#?}");
    let appends = whole.appends().len();
    assert!(appends > 2, "{appends}");
    for (at, by) in (1..=appends).flat_map(|at| [Break::DiesBefore, Break::DiesAfter].map(|by| (at, by))) {
        let journal = MemoryJournal::broken(at, by);
        let dying = new_setup(Arc::clone(&journal));
        tokio::select! {
            biased;
            () = journal.died() => (),
            _ = dying.answer(begun.clone(), &["next"], answered(&waiting, answers())) => panic!("{at} {by:?}: lived"),
        }
        let progress = Progress::of(begun.clone(), journal.entries()).unwrap();
        let Some(progress) = progress else {
            assert_eq!((at, by), (1, Break::DiesBefore));
            continue;
        };
        let again = new_setup(MemoryJournal::new()).go_on(progress).await;
        assert_eq!(transcript(&again), expected, "{at} {by:?}");
        assert_eq!(results(&again), results(&ended), "{at} {by:?}");
    }
}
