//! Executions that are cut after a step, stored, read again and resumed: they end like those that
//! nothing cut.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::HookPoint;
use agent::definition::ErrorPolicyPreset;
use agent::ports::ModelRequest;
use agent::state::{AdditionGap, AgentState, ExecutionBudget, ExecutionStatus, StateAddition, StopReason, StopSignal};
use test_support::clock::TestClock;
use test_support::fake_model::{Beat, asks_for, counted, says, usage};
use test_support::fake_tool::{Behaviour, FakeTool};
use values::clock::Clock as _;
use values::ids::{MessageId, UuidV7Source};
use values::message::{Message, Role};

use crate::comparison::{summary, without_execution};
use crate::hooks::probe::Probe;
use crate::setup::{Setup, assert_ended, budget, shown};

/// The state at the execution's beginning and after each step, as a store of steps would see it.
type States = Arc<Mutex<Vec<AgentState>>>;

fn camera(clock: TestClock, states: States) -> Probe {
    Probe::at_each(&[HookPoint::BeforeStep, HookPoint::AfterStep], move |context| {
        let mut states = states.lock().unwrap();
        let state = context.state.clone();
        if context.point == HookPoint::AfterStep {
            states.push(state.with_step_recorded(clock.now()));
        } else if states.is_empty() {
            states.push(state);
        }
        Ok(context)
    })
}

/// Wants to stop after the first step, and to go on in spite of it.
fn second_thought(clock: TestClock) -> Probe {
    Probe::changing(HookPoint::AfterStep, move |mut context| {
        if context.state.step_count() == 0 {
            let signal = StopSignal::new(StopReason::StopRequested, "second_thought", "enough");
            let state = context.state.with_stop_signal(signal, clock.now());
            context.state = state.with_continuation_requested(clock.now());
        }
        context
    })
    .named("second_thought")
}

/// The input of an agent.
struct Story {
    name: &'static str,
    answers: Vec<Vec<Beat>>,
    budget: ExecutionBudget,
    policy: ErrorPolicyPreset,
    has_second_thought: bool,
    ends: (ExecutionStatus, StopReason),
}

impl Story {
    fn new(name: &'static str, answers: Vec<Vec<Beat>>, ends: (ExecutionStatus, StopReason)) -> Self {
        Self {
            name,
            answers,
            budget: ExecutionBudget::default(),
            policy: ErrorPolicyPreset::default(),
            has_second_thought: false,
            ends,
        }
    }

    /// Makes the agent as it is after so many steps.
    fn setup(&self, steps: usize, clock: Option<TestClock>) -> (Setup, States) {
        let mut setup = Setup::new(self.answers.iter().skip(steps).cloned());
        setup.clock = clock.unwrap_or(setup.clock);
        let (clock, states) = (setup.clock, States::default());
        let mut setup = setup
            .with_budget(self.budget.clone())
            .with_policy(self.policy)
            .with_tool(&FakeTool::new("echo", Behaviour::EchoArguments))
            .with_tool(&FakeTool::new("fails", Behaviour::Fail("no luck".to_owned())));
        if self.has_second_thought {
            setup = setup.with_hook(second_thought(clock));
        }
        (setup.with_hook(camera(clock, Arc::clone(&states))), states)
    }
}

fn stories() -> Vec<Story> {
    let echo = || asks_for(&[("c1", "echo", "{}"), ("c2", "unknown", "")]);
    let fails = || asks_for(&[("c1", "fails", "")]);
    let done = (ExecutionStatus::Completed, StopReason::Completed);
    let budget = |max_steps, max_tokens| ExecutionBudget {
        max_steps,
        max_tokens,
        ..ExecutionBudget::default()
    };
    vec![
        Story::new("done", vec![echo(), echo(), says("done")], done),
        Story {
            budget: budget(Some(2), None),
            ..Story::new(
                "steps",
                vec![echo(), echo()],
                (ExecutionStatus::Stopped, StopReason::StepsLimitReached),
            )
        },
        Story {
            budget: budget(None, Some(400)),
            ..Story::new(
                "tokens",
                vec![counted(echo(), usage(100, 50)); 3],
                (ExecutionStatus::Stopped, StopReason::TokenLimitReached),
            )
        },
        Story {
            policy: ErrorPolicyPreset::RetryToolErrors,
            ..Story::new(
                "errors",
                vec![fails(), fails(), fails()],
                (ExecutionStatus::Stopped, StopReason::RetryLimitReached),
            )
        },
        Story {
            has_second_thought: true,
            ..Story::new("second thought", vec![says("draft"), echo(), says("done")], done)
        },
    ]
}

/// The messages of each request, and its most tokens of output.
fn asked(requests: &[ModelRequest]) -> Vec<(Vec<String>, Option<u64>)> {
    let of_request = |request: &ModelRequest| (shown(request.messages.iter()), request.max_output_tokens);
    requests.iter().map(of_request).collect()
}

/// Who said what, and what of it is a trace.
fn reported(state: &AgentState) -> Vec<(String, bool)> {
    let traces = state.stored_messages().map(|message| message.tags.is_trace);
    shown(state.stored_messages()).into_iter().zip(traces).collect()
}

#[tokio::test(start_paused = true)]
async fn an_execution_that_is_cut_after_any_step_ends_like_one_that_is_not() {
    for story in stories() {
        let (setup, states) = story.setup(0, None);
        let base = setup.run_from(setup.new_state(), "go").await;
        assert_eq!(
            (base.status(), base.stop_reason()),
            (Some(story.ends.0), Some(story.ends.1)),
            "{}",
            story.name
        );
        let requests = asked(&setup.model.requests());
        let states = states.lock().unwrap().clone();
        assert_eq!(states.len(), base.step_count() + 1, "{}", story.name);
        for (steps, state) in states.iter().enumerate() {
            let case = format!("{} after {steps} steps", story.name);
            let read = AgentState::from_json(state.to_json().unwrap()).unwrap();
            assert_eq!((read.step_count(), read.current_step()), (steps, None), "{case}");
            let (setup, _) = story.setup(steps, Some(setup.clock));
            let resumed = setup.resume_from(read).await;
            assert_eq!(summary(&resumed), summary(&base), "{case}");
            assert_eq!(resumed.execution_count(), 1, "{case}");
            assert_eq!(reported(&resumed), reported(&base), "{case}");
            assert_eq!(asked(&setup.model.requests()), requests[steps..], "{case}");
            let ids: BTreeSet<_> = resumed.stored_messages().map(|message| message.id).collect();
            assert_eq!(
                ids.len(),
                resumed.stored_messages().count(),
                "{case}: a message is there twice"
            );
            let started = |state: &AgentState| state.execution().unwrap().started_at;
            assert_eq!(started(&resumed), started(&base), "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_stored_with_each_step_adds_up_to_the_state() {
    let story = &stories()[4];
    let (setup, states) = story.setup(0, None);
    let base = setup.new_state();
    setup.run_from(base.clone(), "go").await;
    let mut earlier = base.clone();
    let mut sum = base;
    let states = states.lock().unwrap().clone();
    for state in states {
        let stored = serde_json::to_value(state.since(&earlier)).unwrap();
        let addition: StateAddition = serde_json::from_value(stored).unwrap();
        let of_another = addition.clone().onto(setup.new_state());
        assert_eq!(of_another, Err(AdditionGap::Agent));
        sum = addition.clone().onto(sum).unwrap();
        let twice = addition.onto(sum.clone());
        assert!(matches!(twice, Err(AdditionGap::Position { .. })), "{twice:?}");
        assert_eq!(sum.to_json().unwrap(), state.to_json().unwrap());
        earlier = state;
    }
}

fn text(words: &str) -> Message {
    let at = "2026-01-02T03:04:05Z".parse().unwrap();
    Message::text(MessageId::generate(&UuidV7Source), Role::User, words, at)
}

#[tokio::test(start_paused = true)]
async fn what_is_stored_with_a_step_does_not_grow_with_the_conversation() {
    let mut sizes = BTreeSet::new();
    for length in [0, 2_000] {
        let story = &stories()[0];
        let (setup, states) = story.setup(0, None);
        let long_ago = (0..length).map(|n| text(&format!("{n} {}", "blah ".repeat(20))));
        let state = setup
            .new_state()
            .with_system_prompt("You are brief. ".repeat(1_000))
            .with_trace(long_ago, setup.clock.now());
        setup.run_from(state, "go").await;
        let states = states.lock().unwrap().clone();
        let addition = serde_json::to_string(&states[2].since(&states[1])).unwrap();
        assert!(!addition.contains("blah") && !addition.contains("brief"), "{addition}");
        // The index of the first message has as many digits as it has.
        sizes.insert(addition.len() - (length + 4).to_string().len());
    }
    assert_eq!(sizes.len(), 1, "{sizes:?}");
}

#[tokio::test(start_paused = true)]
async fn the_time_before_the_cut_counts() {
    let slow = [Beat::Wait(Duration::from_secs(4))]
        .into_iter()
        .chain(asks_for(&[("c1", "echo", "{}")]));
    let story = Story {
        budget: budget(|budget| budget.max_seconds = Some(10.0)),
        ..Story::new(
            "time",
            vec![slow.collect(), vec![Beat::Hang]],
            (ExecutionStatus::Stopped, StopReason::TimeLimitReached),
        )
    };
    let (setup, states) = story.setup(0, None);
    let cut = tokio::time::timeout(Duration::from_secs(7), setup.run()).await;
    assert!(cut.is_err(), "the execution hangs");
    let (setup, _) = story.setup(1, Some(setup.clock));
    let after_first = states.lock().unwrap()[1].clone();
    let resumed = setup.resume_from(after_first).await;
    assert_ended(&resumed, story.ends.0, story.ends.1);
    let seconds = setup.elapsed(&resumed).as_seconds_f64();
    assert!((10.0..10.01).contains(&seconds), "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn an_execution_that_has_ended_is_not_resumed() {
    let setup = Setup::new([says("done")]);
    let ended = setup.run().await;
    let emitted = setup.events.events().len();
    for state in [ended.clone(), without_execution(&ended)] {
        assert_eq!(setup.resume_from(state.clone()).await, state);
    }
    assert_eq!(setup.events.events().len(), emitted, "nothing is told of it");
}
