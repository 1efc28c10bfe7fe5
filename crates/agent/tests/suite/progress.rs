//! Executions whose process dies at each entry of their journal, once and twice: the process that
//! resumes them brings them to the same end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use agent::definition::DriverKind;
use agent::hooks::{HookContext, HookError};
use agent::journal::{JournalEntry, Progress};
use agent::state::{AgentState, ExecutionBudget, ExecutionStatus, StopReason};
use agent::{AgentEvent, HookPoint};
use serde_json::json;
use test_support::clock::TestClock;
use test_support::fake_model::{Beat, asks_for, counted, says, usage};
use test_support::fake_tool::{Behaviour, FakeTool};
use values::clock::Clock as _;
use values::ids::{MessageId, UuidV7Source};
use values::json::{Object, Value};
use values::message::{Message, Role, ToolCall};

use crate::comparison::{assert_retained, difference, normal, uncertain, without_ends};
use crate::hooks::probe::Probe;
use crate::memory_journal::{Break, MemoryJournal, written};
use crate::setup::{Setup, assert_ended, budget};

/// Counts in the metadata how often each point was reached, so that the state tells of a hook that
/// was called twice. It may fail at a point at one time.
fn counter(fails: Option<(HookPoint, u64)>) -> Probe {
    let count = move |mut context: HookContext| {
        let name = context.point.as_str().to_owned();
        let count = context.state.metadata().get(&name).and_then(Value::as_u64);
        let count = count.unwrap_or_default() + 1;
        if fails == Some((context.point, count)) {
            return Err(HookError::new("out of ink"));
        }
        context.state = context.state.with_metadata(Object::from_iter([(name, json!(count))]));
        Ok(context)
    };
    Probe::at_each(HookPoint::ALL, count).named("counter")
}

/// The tools, which outlive the processes as the world does.
struct World {
    once: Arc<FakeTool>,
    again: Arc<FakeTool>,
}

impl World {
    fn new() -> Self {
        let waits = |millis| Behaviour::Wait(Duration::from_millis(millis));
        Self {
            once: FakeTool::new("once", waits(10)),
            again: FakeTool::idempotent("again", waits(5)),
        }
    }

    /// Returns the keys of all calls: each once.
    fn keys(&self) -> BTreeSet<String> {
        self.once.keys().into_iter().chain(self.again.keys()).collect()
    }
}

/// The input of an agent.
#[derive(Clone)]
struct Story {
    name: &'static str,
    driver: DriverKind,
    answers: Vec<Vec<Beat>>,
    script: Value,
    budget: ExecutionBudget,
    in_turn: bool,
    has_hooks: bool,
    fails: Option<(HookPoint, u64)>,
    ends: (ExecutionStatus, StopReason),
}

impl Story {
    fn new(name: &'static str, answers: Vec<Vec<Beat>>) -> Self {
        Self {
            name,
            driver: DriverKind::ToolCalling,
            answers,
            script: json!([]),
            budget: ExecutionBudget::default(),
            in_turn: false,
            has_hooks: false,
            fails: None,
            ends: (ExecutionStatus::Completed, StopReason::Completed),
        }
    }

    /// Makes the agent in a process that finds so many answers given.
    fn setup(&self, world: &World, answered: usize, clock: Option<TestClock>) -> Setup {
        let mut setup = Setup::new(self.answers.iter().skip(answered).cloned());
        setup.clock = clock.unwrap_or(setup.clock);
        let setup = if self.driver == DriverKind::Scripted {
            setup.with_script(self.script.clone())
        } else {
            setup.with_driver(self.driver)
        };
        let setup = setup.with_budget(self.budget.clone());
        let setup = setup.with_tool(&world.once).with_tool(&world.again);
        let setup = if self.in_turn {
            setup.with_calls_in_turn()
        } else {
            setup
        };
        if self.has_hooks {
            setup.with_hook(counter(self.fails))
        } else {
            setup
        }
    }
}

fn mixed() -> Vec<Beat> {
    asks_for(&[
        ("c1", "once", "{}"),
        ("c2", "again", "{}"),
        ("c3", "once", r#"{"note": "n"}"#),
    ])
}

/// Stories of a hook that fails among the calls of a step.
fn failing_stories() -> impl Iterator<Item = Story> {
    [
        ("fails before a call", HookPoint::BeforeToolUse, 2),
        ("fails after a call", HookPoint::AfterToolUse, 2),
    ]
    .into_iter()
    .map(|(name, point, count)| Story {
        in_turn: true,
        has_hooks: true,
        fails: Some((point, count)),
        ends: (ExecutionStatus::Failed, StopReason::ErrorForbade),
        ..Story::new(name, vec![mixed()])
    })
}

fn stories() -> Vec<Story> {
    let answers = || {
        vec![
            mixed(),
            asks_for(&[("c4", "unknown", "{}"), ("c5", "once", "{}")]),
            says("done"),
        ]
    };
    let acts = |tool: &str| {
        says(&format!(
            r#"{{"thought": "hm", "action": {{"tool": "{tool}", "arguments": {{}}}}}}"#
        ))
    };
    vec![
        Story::new("at once", answers()),
        Story {
            has_hooks: true,
            ..Story::new("at once with hooks", answers())
        },
        Story {
            in_turn: true,
            ..Story::new("in turn", answers())
        },
        Story {
            in_turn: true,
            has_hooks: true,
            ..Story::new("in turn with hooks", answers())
        },
        Story {
            driver: DriverKind::React,
            has_hooks: true,
            ..Story::new(
                "react",
                vec![
                    acts("once"),
                    acts("again"),
                    says(r#"{"thought": "", "answer": "done"}"#),
                ],
            )
        },
        Story {
            driver: DriverKind::Scripted,
            has_hooks: true,
            script: json!([
                {"tool_calls": [{"name": "once"}, {"name": "again"}], "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}},
                {"text": "done"}
            ]),
            ..Story::new("scripted", Vec::new())
        },
        Story {
            budget: budget(|budget| budget.max_tokens = Some(300)),
            ends: (ExecutionStatus::Stopped, StopReason::TokenLimitReached),
            ..Story::new(
                "tokens",
                answers()
                    .into_iter()
                    .map(|answer| counted(answer, usage(100, 50)))
                    .collect(),
            )
        },
        Story {
            budget: budget(|budget| budget.max_steps = Some(2)),
            ends: (ExecutionStatus::Stopped, StopReason::StepsLimitReached),
            ..Story::new("steps", answers())
        },
    ]
}

/// One life of an execution: a process, what it keeps, and how it is left.
struct Life {
    setup: Setup,
    journal: Arc<MemoryJournal>,
    /// The state at the end, unless the process died.
    ended: Option<AgentState>,
}

impl Life {
    /// Begins the execution.
    async fn first(
        story: &Story,
        world: &World,
        begun: &AgentState,
        clock: TestClock,
        journal: Arc<MemoryJournal>,
    ) -> Self {
        let setup = story
            .setup(world, 0, Some(clock))
            .with_journal(Arc::clone(&journal) as _);
        let input = Message::text(MessageId::generate(&UuidV7Source), Role::User, "go", clock.now());
        let ended = tokio::select! {
            biased;
            () = journal.died() => None,
            state = setup.run_on(begun.clone(), vec![input]) => Some(state),
        };
        Self { setup, journal, ended }
    }

    /// Goes on with it.
    async fn next(
        story: &Story,
        world: &World,
        progress: &Progress,
        clock: TestClock,
        journal: Arc<MemoryJournal>,
    ) -> Self {
        let answered = progress.state.step_count() + usize::from(progress.pending.is_some());
        let setup = story
            .setup(world, answered, Some(clock))
            .with_journal(Arc::clone(&journal) as _);
        let ended = tokio::select! {
            biased;
            () = journal.died() => None,
            state = setup.go_on(progress.clone()) => Some(state),
        };
        Self { setup, journal, ended }
    }
}

/// Returns the ids of the calls that were left begun, of tools whose calls may not be repeated.
fn left_begun(entries: &[JournalEntry]) -> BTreeSet<String> {
    let mut begun = BTreeMap::new();
    let mut calls: Vec<ToolCall> = Vec::new();
    for entry in entries {
        match entry {
            JournalEntry::CallsRequested { step, .. } => calls = step.tool_calls().cloned().collect(),
            JournalEntry::CallBegun { index } => drop(begun.insert(*index, calls[*index].clone())),
            JournalEntry::CallEnded { index, .. } => drop(begun.remove(index)),
            JournalEntry::Reached(_) => begun.clear(),
            JournalEntry::SubagentBegun { .. }
            | JournalEntry::EnvironmentChanged { .. }
            | JournalEntry::CallDecided { .. } => (),
        }
    }
    let once = begun.into_values().filter(|call| call.name == "once");
    once.map(|call| call.id).collect()
}

/// Checks what holds of every end.
fn assert_as_if_uncut(base: &AgentState, ended: &AgentState, lost: usize, case: &str) {
    let (base_json, ended_json) = (normal(base), normal(ended));
    let calls = uncertain(&ended_json);
    assert_eq!(calls.len(), lost, "{case}: {calls:?}");
    let (base_json, ended_json) = (without_ends(base_json, &calls), without_ends(ended_json, &calls));
    assert_eq!(difference("", &base_json, &ended_json), None, "{case}");
    assert_eq!((ended.usage(), ended.execution_count()), (base.usage(), 1), "{case}");
}

/// Checks that no event is emitted twice.
fn assert_emitted_once(setup: &Setup, progress: &Progress, case: &str) {
    let pending = progress.pending.is_some().then_some(progress.state.step_count() + 1);
    for event in setup.events.events() {
        match event {
            AgentEvent::ExecutionStarted { .. } => panic!("{case}: the execution begins again"),
            AgentEvent::StepStarted { step_number, .. } => {
                assert!(
                    step_number > progress.state.step_count(),
                    "{case}: step {step_number} begins again"
                );
                assert_ne!(Some(step_number), pending, "{case}: the pending step begins again");
            }
            AgentEvent::ModelRequested { step_number, .. } => {
                assert_ne!(Some(step_number), pending, "{case}: an answer is asked for again");
            }
            _ => (),
        }
    }
}

/// Checks that no call of the tool that may not be repeated was made twice, and that all have the
/// keys that they always have.
fn assert_made_once(base: &World, world: &World, case: &str) {
    let keys = world.once.keys();
    assert_eq!(
        keys.iter().collect::<BTreeSet<_>>().len(),
        keys.len(),
        "{case}: a call was made twice"
    );
    let expected = base.keys();
    assert!(
        world.keys().is_subset(&expected),
        "{case}: {:?} of {expected:?}",
        world.keys()
    );
}

#[tokio::test(start_paused = true)]
async fn an_execution_whose_process_dies_at_any_entry_ends_like_one_whose_process_lives() {
    for story in stories().into_iter().chain(failing_stories()) {
        let (base_world, whole) = (World::new(), MemoryJournal::new());
        let setup = story.setup(&base_world, 0, None);
        let begun = setup.new_state();
        let base = Life::first(&story, &base_world, &begun, setup.clock, Arc::clone(&whole)).await;
        let base = base.ended.unwrap();
        assert_eq!(
            (base.status(), base.stop_reason()),
            (Some(story.ends.0), Some(story.ends.1)),
            "{}",
            story.name
        );
        let appends = whole.appends().len();
        assert!(appends > 4, "{}: {appends}", story.name);
        for at in 1..=appends {
            for by in [Break::DiesBefore, Break::DiesAfter] {
                let case = format!("{}: {by:?} {at} of {appends}", story.name);
                let world = World::new();
                let journal = MemoryJournal::broken(at, by);
                let first = Life::first(&story, &world, &begun, setup.clock, journal).await;
                assert!(first.ended.is_none(), "{case}");
                let entries = first.journal.entries();
                let Some(progress) = Progress::of(begun.clone(), entries.clone()).unwrap() else {
                    assert_eq!((at, by), (1, Break::DiesBefore), "{case}: nothing is kept");
                    assert!(world.keys().is_empty(), "{case}: a call was made that nobody knows of");
                    continue;
                };
                let again = MemoryJournal::new();
                let next = Life::next(&story, &world, &progress, setup.clock, Arc::clone(&again)).await;
                let ended = next.ended.unwrap();
                assert_as_if_uncut(&base, &ended, left_begun(&entries).len(), &case);
                assert_emitted_once(&next.setup, &progress, &case);
                assert_made_once(&base_world, &world, &case);
                assert_eq!(
                    ended.execution().unwrap().execution_id,
                    progress.state.execution().unwrap().execution_id,
                    "{case}"
                );
                // What both have kept adds up to the end.
                let retained = entries.into_iter().chain(again.entries());
                let retained = Progress::of(begun.clone(), retained).unwrap().unwrap();
                assert_eq!(retained.pending, None, "{case}");
                assert_retained(&retained.state, &ended, &case);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_execution_whose_process_dies_twice_ends_like_one_whose_process_lives() {
    for story in stories()
        .iter()
        .filter(|story| story.name.ends_with("turn with hooks") || story.name == "at once")
    {
        let (base_world, whole) = (World::new(), MemoryJournal::new());
        let setup = story.setup(&base_world, 0, None);
        let begun = setup.new_state();
        let base = Life::first(story, &base_world, &begun, setup.clock, Arc::clone(&whole)).await;
        let base = base.ended.unwrap();
        let appends = whole.appends().len();
        for (at, then) in (1..=appends).flat_map(|at| (1..4).map(move |then| (at, then))) {
            for by in [Break::DiesBefore, Break::DiesAfter] {
                let case = format!("{}: after {at}, then {by:?} {then}", story.name);
                let world = World::new();
                let journal = MemoryJournal::broken(at, Break::DiesAfter);
                let first = Life::first(story, &world, &begun, setup.clock, journal).await;
                let mut entries = first.journal.entries();
                let progress = Progress::of(begun.clone(), entries.clone()).unwrap().unwrap();
                let mut lost = left_begun(&entries);
                let journal = MemoryJournal::broken(then, by);
                let second = Life::next(story, &world, &progress, setup.clock, Arc::clone(&journal)).await;
                entries.extend(journal.entries());
                let progress = Progress::of(begun.clone(), entries.clone()).unwrap().unwrap();
                let ended = if let Some(ended) = second.ended {
                    ended
                } else {
                    lost.extend(left_begun(&entries));
                    let last = Life::next(story, &world, &progress, setup.clock, MemoryJournal::new()).await;
                    assert_emitted_once(&last.setup, &progress, &case);
                    last.ended.unwrap()
                };
                assert_as_if_uncut(&base, &ended, lost.len(), &case);
                assert_made_once(&base_world, &world, &case);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_hangs_is_cut_when_the_time_since_the_first_beginning_is_spent() {
    let hangs = FakeTool::idempotent("hangs", Behaviour::Hang);
    let budget = budget(|budget| budget.max_seconds = Some(10.0));
    let setup = |answers: Vec<Vec<Beat>>| Setup::new(answers).with_budget(budget.clone()).with_tool(&hangs);
    let journal = MemoryJournal::new();
    let first = setup(vec![asks_for(&[("c1", "hangs", "{}")])]).with_journal(Arc::clone(&journal) as _);
    let begun = first.new_state();
    let cut = tokio::time::timeout(Duration::from_secs(4), first.run_from(begun.clone(), "go")).await;
    assert!(cut.is_err(), "the tool hangs");
    tokio::time::advance(Duration::from_secs(3)).await;
    let progress = Progress::of(begun, journal.entries()).unwrap().unwrap();
    let mut next = setup(Vec::new()).with_journal(MemoryJournal::new());
    next.clock = first.clock;
    let ended = next.go_on(progress).await;
    assert_ended(&ended, ExecutionStatus::Stopped, StopReason::TimeLimitReached);
    let seconds = next.elapsed(&ended).as_seconds_f64();
    assert!((10.0..10.01).contains(&seconds), "{seconds}");
    assert_eq!(hangs.begun(), 2);
    let keys: BTreeSet<_> = hangs.keys().into_iter().collect();
    assert_eq!(keys.len(), 1, "the call has one key");
}

#[tokio::test(start_paused = true)]
async fn what_is_persisted_of_a_step_does_not_grow_with_the_execution() {
    let steps = 200;
    let asks = || asks_for(&[("c1", "again", "{}"), ("c2", "again", "{}")]);
    let story = Story {
        has_hooks: true,
        ..Story::new("long", (0..steps).map(|_| asks()).chain([says("done")]).collect())
    };
    let (world, journal) = (World::new(), MemoryJournal::new());
    let setup = story.setup(&world, 0, None);
    let begun = setup.new_state().with_system_prompt("You are brief. ".repeat(1_000));
    let ended = Life::first(&story, &world, &begun, setup.clock, Arc::clone(&journal))
        .await
        .ended;
    assert_eq!(ended.unwrap().step_count(), steps + 1);
    let mut sizes = vec![0];
    for entry in journal.entries() {
        *sizes.last_mut().unwrap() += written(&entry).0;
        if matches!(entry, JournalEntry::Reached(_)) {
            sizes.push(0);
        }
    }
    // The counters and the indexes in an entry get a digit or two longer.
    let (second, last) = (sizes[2], sizes[steps]);
    assert!(
        last.abs_diff(second) < 400,
        "{second} bytes of step 2, {last} of step {steps}"
    );
}
