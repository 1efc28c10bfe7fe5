//! Messages that arrive during an execution: they join its conversation before a step, once, and
//! each of them gets a completion.

use std::sync::{Arc, Mutex};

use agent::journal::Progress;
use agent::state::{AgentState, ExecutionStatus, FinishReason, StopReason, StopSignal};
use agent::{AgentEvent, HookPoint, Inbox};
use test_support::clock::TestClock;
use test_support::fake_model::{Beat, asks_for, completed, says, usage};
use test_support::fake_tool::{Behaviour, FakeTool};
use values::clock::Clock as _;
use values::ids::{MessageId, UuidV7Source};
use values::message::{ContentPart, Message, Role};

use crate::hooks::probe::Probe;
use crate::memory_journal::MemoryJournal;
use crate::setup::{Setup, budget, transcript};

/// Holds messages until they are taken.
#[derive(Debug, Default)]
struct Letters(Mutex<Vec<Message>>);

impl Letters {
    fn put(&self, message: Message) {
        self.0.lock().unwrap().push(message);
    }
}

impl Inbox for Letters {
    fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    fn is_empty(&self) -> bool {
        self.0.lock().unwrap().is_empty()
    }
}

fn message(text: &str, clock: TestClock) -> Message {
    Message::text(MessageId::generate(&UuidV7Source), Role::User, text, clock.now())
}

fn setup(answers: Vec<Vec<Beat>>) -> (Setup, Arc<Letters>) {
    let inbox = Arc::new(Letters::default());
    let setup = Setup::new(answers).with_inbox(Arc::clone(&inbox) as _);
    (setup.with_tool(&FakeTool::new("echo", Behaviour::EchoArguments)), inbox)
}

/// The messages that were told as applied, with their steps.
fn applied(setup: &Setup) -> Vec<(usize, MessageId)> {
    let events = setup.events.events().into_iter();
    let applied = events.filter_map(|event| match event {
        AgentEvent::MessageApplied {
            step_number,
            message_id,
        } => Some((step_number, message_id)),
        _ => None,
    });
    applied.collect()
}

fn asks() -> Vec<Beat> {
    asks_for(&[("c1", "echo", "{}"), ("c2", "echo", "{}")])
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_at_any_event_joins_the_conversation_or_stays_waiting() {
    let (uncut, _) = setup(vec![asks(), says("done")]);
    uncut.run().await;
    let events = uncut.events.names();
    for at in 1..=events.len() {
        let case = format!("comes at {at}, {}", events[at - 1]);
        let (setup, inbox) = setup(vec![asks(), says("done"), says("and more")]);
        let steer = message("wait", setup.clock);
        let (id, into) = (steer.id, Arc::clone(&inbox));
        setup.events.at(at, move || into.put(steer));
        let state = setup.run().await;
        assert_eq!(state.status(), Some(ExecutionStatus::Completed), "{case}");
        let message = state.stored_messages().find(|message| message.id == id);
        if inbox.is_empty() {
            let tags = &message.unwrap().tags;
            let execution_id = state.execution().unwrap().execution_id;
            assert_eq!(
                (tags.is_trace, tags.execution_id, tags.step_id),
                (false, Some(execution_id), None),
                "{case}"
            );
            let applied = applied(&setup);
            assert_eq!(applied.len(), 1, "{case}");
            assert_eq!(applied[0].1, id, "{case}");
            // The request of its step was the first that had it.
            let has_it = |request: &agent::ports::ModelRequest| request.messages.iter().any(|message| message.id == id);
            let first = setup.model.requests().iter().position(has_it);
            assert_eq!(first.map(|at| at + 1), Some(applied[0].0), "{case}");
        } else {
            assert!(message.is_none() && applied(&setup).is_empty(), "{case}");
            // The last step was decided about.
            assert!(at >= events.len() - 2, "{case}: it came in time");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_during_the_last_step_has_it_be_no_last_one() {
    let (setup, inbox) = setup(vec![says("draft"), says("done")]);
    let (steer, into) = (message("shorter!", setup.clock), Arc::clone(&inbox));
    setup.events.at(4, move || into.put(steer));
    let state = setup.run().await;
    assert_eq!(
        transcript(&state),
        ["user: go", "assistant: draft", "user: shorter!", "assistant: done"]
    );
    let traces: Vec<_> = state.stored_messages().map(|message| message.tags.is_trace).collect();
    assert_eq!(traces, [false, true, false, false]);
}

#[tokio::test(start_paused = true)]
async fn a_message_during_the_last_step_of_a_budget_waits_and_the_response_completes() {
    let one_step = budget(|budget| budget.max_steps = Some(1));
    let few_tokens = budget(|budget| budget.max_tokens = Some(15));
    for budget in [one_step, few_tokens] {
        let (setup, inbox) = setup(vec![says("one"), says("two")]);
        let setup = setup.with_budget(budget.clone());
        let (steer, into) = (message("more", setup.clock), Arc::clone(&inbox));
        setup.events.at(3, move || into.put(steer));
        let state = setup.run().await;
        assert_eq!(
            (state.step_count(), state.stop_reason()),
            (1, Some(StopReason::Completed)),
            "{budget:?}"
        );
        assert!(!state.stored_messages().last().unwrap().tags.is_trace, "{budget:?}");
        assert!(!inbox.is_empty(), "{budget:?}: a message that no model sees stays");
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_does_not_hold_up_the_end_of_a_run_that_is_stopped() {
    let (setup, inbox) = setup(vec![says("done"), says("never asked")]);
    let (steer, into, stop) = (message("more", setup.clock), Arc::clone(&inbox), setup.stop.clone());
    // The answer is whole.
    setup.events.at(5, move || {
        into.put(steer);
        stop.cancel();
    });
    let state = setup.run().await;
    assert_eq!(
        (state.step_count(), state.stop_reason(), setup.model.requests().len()),
        (1, Some(StopReason::Completed), 1)
    );
    assert!(!state.stored_messages().last().unwrap().tags.is_trace);
    assert!(!inbox.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_message_does_not_overrule_a_hook_that_stops_before_the_next_step() {
    let (setup, inbox) = setup(vec![asks(), says("never asked")]);
    let clock = setup.clock;
    let setup = setup.with_hook(Probe::changing(HookPoint::BeforeStep, move |mut context| {
        if context.state.step_count() == 1 {
            let enough = StopSignal::new(StopReason::StopRequested, "probe", "enough");
            context.state = context.state.with_stop_signal(enough, clock.now());
        }
        context
    }));
    let (steer, into) = (message("more", clock), Arc::clone(&inbox));
    setup.events.at(3, move || into.put(steer));
    let state = setup.run().await;
    assert_eq!(
        (state.step_count(), state.stop_reason(), setup.model.requests().len()),
        (1, Some(StopReason::StopRequested), 1)
    );
    assert!(!inbox.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_message_that_waits_for_a_step_beyond_the_budget_stays() {
    let (setup, inbox) = setup(vec![asks(), says("never asked")]);
    let setup = setup.with_budget(budget(|budget| budget.max_steps = Some(1)));
    let (steer, into) = (message("more", setup.clock), Arc::clone(&inbox));
    setup.events.at(3, move || into.put(steer));
    let state = setup.run().await;
    assert_eq!(
        (state.step_count(), state.stop_reason(), setup.model.requests().len()),
        (1, Some(StopReason::StepsLimitReached), 1)
    );
    assert!(!inbox.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_message_waits_until_a_paused_completion_has_continued() {
    let pauses = vec![completed(
        vec![ContentPart::text("searching")],
        FinishReason::PauseTurn,
        usage(10, 5),
    )];
    let (setup, inbox) = setup(vec![pauses, asks(), says("done")]);
    let (steer, into) = (message("hurry", setup.clock), Arc::clone(&inbox));
    setup.events.at(3, move || into.put(steer));
    let state = setup.run().await;
    assert_eq!(
        transcript(&state),
        [
            "user: go",
            "assistant: searching",
            "assistant: call c1 call c2",
            "tool: result c1 result c2",
            "user: hurry",
            "assistant: done"
        ]
    );
}

/// Goes on from the entries with a message that the first process may have taken.
async fn resumed(begun: AgentState, journal: &MemoryJournal, steer: &Message, clock: TestClock) -> (AgentState, Setup) {
    let progress = Progress::of(begun, journal.entries()).unwrap().unwrap();
    let (mut setup, inbox) = setup(vec![says("done")]);
    setup.clock = clock;
    inbox.put(steer.clone());
    let setup = setup.with_journal(MemoryJournal::new());
    (setup.go_on(progress).await, setup)
}

#[tokio::test(start_paused = true)]
async fn a_message_that_a_process_took_before_it_died_is_there_once() {
    let (first, inbox) = setup(vec![asks(), vec![Beat::Hang]]);
    let journal = MemoryJournal::new();
    let first = first.with_journal(Arc::clone(&journal) as _);
    let steer = message("wait", first.clock);
    let (sent, into) = (steer.clone(), Arc::clone(&inbox));
    first.events.at(3, move || into.put(sent));
    let begun = first.new_state();
    let died = tokio::time::timeout(std::time::Duration::from_secs(1), first.run_from(begun.clone(), "go")).await;
    assert!(died.is_err(), "the model hangs");
    assert_eq!(applied(&first), [(2, steer.id)]);
    let (state, next) = resumed(begun, &journal, &steer, first.clock).await;
    assert_eq!(
        transcript(&state),
        [
            "user: go",
            "assistant: call c1 call c2",
            "tool: result c1 result c2",
            "user: wait",
            "assistant: done"
        ]
    );
    assert_eq!(applied(&next), [(2, steer.id)], "whoever asks hears that it is applied");
}

#[tokio::test(start_paused = true)]
async fn a_message_after_the_last_completion_is_answered_by_the_next_worker() {
    let (first, inbox) = setup(vec![says("draft"), vec![Beat::Hang]]);
    let journal = MemoryJournal::new();
    let first = first.with_journal(Arc::clone(&journal) as _);
    let steer = message("shorter!", first.clock);
    let (sent, into) = (steer.clone(), Arc::clone(&inbox));
    first.events.at(4, move || into.put(sent));
    let begun = first.new_state();
    let died = tokio::time::timeout(std::time::Duration::from_secs(1), first.run_from(begun.clone(), "go")).await;
    assert!(died.is_err(), "the model hangs");
    let (state, _) = resumed(begun, &journal, &steer, first.clock).await;
    assert_eq!(
        transcript(&state),
        ["user: go", "assistant: draft", "user: shorter!", "assistant: done"]
    );
    assert_eq!(
        (state.status(), state.step_count()),
        (Some(ExecutionStatus::Completed), 2)
    );
}
