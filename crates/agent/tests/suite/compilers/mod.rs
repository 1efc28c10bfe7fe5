//! The messages of a history that each compiler sends. Providers accept them for any history.

mod prefix;
mod traces;

use std::collections::BTreeSet;
use std::sync::Arc;

use agent::compilers::{CompilerConfig, Traces};
use agent::state::{AgentContext, AgentState, MessageStore};
use proptest::prelude::*;
use serde_json::{Value, json};
use test_support::fake_model::tool_call;
use test_support::provider_rules::assert_history_valid;
use values::clock::{Clock as _, SystemClock};
use values::ids::{AgentId, ExecutionId, MessageId, StepId, UuidV7Source};
use values::message::{ContentPart, Coverage, Message, MessageTags, Role, Section, ToolResult};
use values::session::History;

use crate::setup::shown;

/// A message of a history in the making.
#[derive(Debug, Clone)]
pub(super) struct Line {
    role: Role,
    text: &'static str,
    calls: Vec<&'static str>,
    /// The execution that it belongs to: 0 is none, [`CURRENT`] the running one.
    pub(super) execution: usize,
    is_output: bool,
    tags: MessageTags,
}

pub(super) const CURRENT: usize = 3;

pub(super) fn line(role: Role, text: &'static str) -> Line {
    Line {
        role,
        text,
        calls: Vec::new(),
        execution: 0,
        is_output: false,
        tags: MessageTags::default(),
    }
}

pub(super) fn user(text: &'static str) -> Line {
    line(Role::User, text)
}

pub(super) fn answer(text: &'static str) -> Line {
    let is_output = true;
    Line {
        is_output,
        ..line(Role::Assistant, text)
    }
}

/// A call with its result, both traces of work.
pub(super) fn work(id: &'static str) -> [Line; 2] {
    [Role::Assistant, Role::Tool].map(|role| {
        let calls = vec![id];
        Line {
            calls,
            is_output: true,
            ..line(role, "")
        }
        .trace()
    })
}

impl Line {
    pub(super) fn of(self, execution: usize) -> Self {
        Self { execution, ..self }
    }

    fn trace(mut self) -> Self {
        self.tags.is_trace = true;
        self
    }

    pub(super) fn partial(mut self) -> Self {
        self.tags.is_partial = true;
        self
    }

    fn in_section(mut self, name: &str) -> Self {
        self.tags.section = Section::new(name);
        self
    }

    pub(super) fn covering(mut self, to: u64) -> Self {
        self.tags.covers = Some(Coverage { from: 0, to });
        self.in_section(Section::SUMMARY)
    }

    fn message(&self, executions: &[ExecutionId]) -> Arc<Message> {
        let words = (!self.text.is_empty()).then(|| ContentPart::text(self.text));
        let calls = self.calls.iter().map(|id| match self.role {
            Role::Tool => ContentPart::ToolResult(ToolResult {
                call_id: (*id).to_owned(),
                name: "t".to_owned(),
                content: vec![ContentPart::text("r".repeat(40))],
                is_error: false,
            }),
            _ => ContentPart::ToolCall(tool_call(id, "t", "{}")),
        });
        let content = words.into_iter().chain(calls).collect();
        let tags = MessageTags {
            execution_id: self.execution.checked_sub(1).map(|at| executions[at]),
            step_id: self.is_output.then(|| StepId::generate(&UuidV7Source)),
            ..self.tags.clone()
        };
        let now = SystemClock.now();
        Arc::new(Message::new(MessageId::generate(&UuidV7Source), self.role, content, now).with_tags(tags))
    }
}

/// Returns the state of a running execution whose history is held from the index on.
pub(super) fn state(lines: &[Line], held_from: usize) -> AgentState {
    let executions: Vec<_> = (0..CURRENT).map(|_| ExecutionId::generate(&UuidV7Source)).collect();
    let history: History = lines.iter().map(|line| line.message(&executions)).collect();
    let context = AgentContext {
        store: MessageStore::new(history.held_from(held_from)),
        system_prompt: "s".repeat(40),
        ..AgentContext::default()
    };
    let now = SystemClock.now();
    let state = AgentState::new(AgentId::generate(&UuidV7Source), now).restored(now, now, 1, context);
    state.start_execution(executions[CURRENT - 1], now)
}

pub(super) fn compiled(config: &Value, state: &AgentState) -> Vec<Arc<Message>> {
    compiled_with(config, Traces::default(), state)
}

pub(super) fn compiled_with(config: &Value, traces: Traces, state: &AgentState) -> Vec<Arc<Message>> {
    let config: CompilerConfig = serde_json::from_value(config.clone()).unwrap();
    config.check().unwrap();
    state.messages(&*config.compiler(traces)).to_vec()
}

#[track_caller]
pub(super) fn check(config: &Value, lines: &[Line], wanted: &[&str]) {
    let messages = compiled(config, &state(lines, 0));
    assert_eq!(shown(messages.iter()), wanted, "{config}");
    assert_history_valid(&messages);
}

/// Two executions with work, notes beside them, and a third at work.
fn conversation() -> Vec<Line> {
    let first = [user("one").of(1)].into_iter().chain(work("a").map(|line| line.of(1)));
    let second = [
        answer("first").of(1),
        user("note").of(2).in_section("buffer"),
        user("two").of(2),
        answer("half an ans").of(2).trace().partial(),
        answer("second").of(2),
        user("rule").of(3).in_section("rules"),
        user("three").of(3),
    ];
    let third = work("b").map(|line| line.of(3));
    first.chain(second).chain(third).collect()
}

#[test]
fn sections_and_traces_are_chosen_by_the_compiler() {
    let talk = ["user: one", "assistant: first", "user: two", "assistant: second"];
    let open = ["user: three", "assistant: call b", "tool: result b"];
    let note = ["user: note"];
    let rule = ["user: rule"];
    for (config, wanted) in [
        (json!({"kind": "conversation"}), [&talk[..], &open].concat()),
        (
            json!({"kind": "all_sections"}),
            [&talk[..2], &note, &talk[2..], &rule, &open].concat(),
        ),
        (
            json!({"kind": "sections", "names": ["rules", "messages"]}),
            [&talk[..], &rule, &open].concat(),
        ),
        (json!({"kind": "last_n", "messages": 100}), [&talk[..], &open].concat()),
        (json!({"kind": "last_n", "messages": 5}), [&talk[2..], &open].concat()),
        (json!({"kind": "last_n", "messages": 6}), [&talk[2..], &open].concat()),
        (json!({"kind": "last_n", "messages": 1}), open.to_vec()),
        (
            json!({"kind": "token_window", "max_tokens": 1_000}),
            [&talk[..], &open].concat(),
        ),
        // 10 of the system prompt, 2 of the input, 11 of the call and its result, 2 of the answer,
        // 1 of the question.
        (
            json!({"kind": "token_window", "max_tokens": 26}),
            [&talk[2..], &open].concat(),
        ),
        (json!({"kind": "token_window", "max_tokens": 25}), open.to_vec()),
        (json!({"kind": "token_window", "max_tokens": 1}), open.to_vec()),
    ] {
        check(&config, &conversation(), &wanted);
    }
}

#[test]
fn a_size_limit_retains_the_input_and_cuts_the_work_between_calls() {
    let lines: Vec<Line> = [user("old"), answer("old answer"), user("go").of(3)]
        .into_iter()
        .chain(["a", "b", "c"].into_iter().flat_map(work).map(|line| line.of(3)))
        .collect();
    let newest = [
        "user: go",
        "assistant: call b",
        "tool: result b",
        "assistant: call c",
        "tool: result c",
    ];
    // 10 of the system prompt, 1 of the input, 11 of each call with its result.
    check(&json!({"kind": "token_window", "max_tokens": 33}), &lines, &newest);
    let last = [newest[0], newest[3], newest[4]];
    check(&json!({"kind": "token_window", "max_tokens": 32}), &lines, &last);
    check(&json!({"kind": "token_window", "max_tokens": 1}), &lines, &last);
}

/// With quadratic work this would take hours.
#[test]
fn work_of_very_many_executions_is_weighed_once() {
    let now = SystemClock.now();
    let of = |role, tags| {
        let content = vec![ContentPart::text("x".repeat(40))];
        Arc::new(Message::new(MessageId::generate(&UuidV7Source), role, content, now).with_tags(tags))
    };
    let asked_and_worked = |_| {
        let input = MessageTags {
            execution_id: Some(ExecutionId::generate(&UuidV7Source)),
            ..MessageTags::default()
        };
        let work = MessageTags {
            step_id: Some(StepId::generate(&UuidV7Source)),
            is_trace: true,
            ..input.clone()
        };
        [of(Role::User, input), of(Role::Assistant, work)]
    };
    let history: History = (0..50_000).flat_map(asked_and_worked).collect();
    let context = AgentContext {
        store: MessageStore::new(history),
        ..AgentContext::default()
    };
    let state = AgentState::new(AgentId::generate(&UuidV7Source), now).restored(now, now, 1, context);
    let state = state.start_execution(ExecutionId::generate(&UuidV7Source), now);
    for (max_tokens, sent) in [(1_000_000, 50_000), (10_000, 500)] {
        let config = json!({"kind": "token_window", "max_tokens": max_tokens});
        // Ten tokens each, and work is sent with its input.
        assert_eq!(compiled(&config, &state).len(), 2 * sent, "{max_tokens}");
    }
}

#[test]
fn turns_of_an_imported_history_begin_with_questions() {
    let lines = [
        user("a"),
        user("b"),
        answer("c"),
        answer("d"),
        user("e"),
        answer("f"),
        user("go").of(3),
    ];
    let all = [
        "user: a",
        "user: b",
        "assistant: c",
        "assistant: d",
        "user: e",
        "assistant: f",
        "user: go",
    ];
    for (most, from) in [(7, 0), (6, 4), (3, 4), (2, 6), (1, 6)] {
        check(&json!({"kind": "last_n", "messages": most}), &lines, &all[from..]);
    }
}

#[test]
fn what_an_execution_added_is_a_turn_beside_messages_that_none_added() {
    let lines = [
        user("a"),
        user("b").of(1),
        answer("c").of(1),
        answer("d"),
        user("go").of(3),
    ];
    let all = ["user: a", "user: b", "assistant: c", "assistant: d", "user: go"];
    for (most, from) in [(5, 0), (4, 1), (3, 3), (2, 3), (1, 4)] {
        check(&json!({"kind": "last_n", "messages": most}), &lines, &all[from..]);
    }
}

#[test]
fn every_compiler_begins_at_the_newest_summary() {
    let mut lines = vec![user("lost"), answer("lost"), user("kept"), answer("kept")];
    lines.extend([user("older").covering(1), user("newer").covering(2), user("go").of(3)]);
    let wanted = ["user: newer", "user: kept", "assistant: kept", "user: go"];
    for config in [
        json!({"kind": "conversation"}),
        json!({"kind": "all_sections"}),
        json!({"kind": "sections", "names": ["messages", "summary"]}),
        json!({"kind": "last_n", "messages": 3}),
        json!({"kind": "token_window", "max_tokens": 15}),
    ] {
        check(&config, &lines, &wanted);
    }
    // The summary is counted by its size, and not as a message.
    check(
        &json!({"kind": "last_n", "messages": 1}),
        &lines,
        &["user: newer", "user: go"],
    );
    // A window may begin with an answer where a summary stands before it.
    let without_question = ["user: newer", "assistant: kept", "user: go"];
    check(
        &json!({"kind": "token_window", "max_tokens": 14}),
        &lines,
        &without_question,
    );
    // What is covered need not be there.
    let window = state(&lines, 2);
    assert_eq!(
        shown(compiled(&json!({"kind": "conversation"}), &window).iter()),
        wanted
    );
}

#[test]
fn a_summary_of_the_work_so_far_does_not_hide_the_input() {
    let mut lines = vec![user("lost"), user("go").of(3)];
    lines.extend(work("a").map(|line| line.of(3)));
    lines.extend(work("b").map(|line| line.of(3)));
    lines.push(user("so far").of(3).covering(4));
    let wanted = ["user: so far", "user: go", "assistant: call b", "tool: result b"];
    for config in [
        json!({"kind": "conversation"}),
        json!({"kind": "last_n", "messages": 1}),
        json!({"kind": "token_window", "max_tokens": 1}),
    ] {
        check(&config, &lines, &wanted);
    }
}

#[test]
fn partial_completions_are_sent_unless_they_were_retried() {
    let lines = [
        user("a").of(1),
        answer("stopped here").of(1).partial(),
        user("go").of(3),
        answer("failed here").of(3).trace().partial(),
    ];
    let wanted = ["user: a", "assistant: stopped here", "user: go"];
    check(&json!({"kind": "conversation"}), &lines, &wanted);
}

#[test]
fn calls_and_results_are_chosen_together() {
    let [ask, result] = work("half");
    let [other_ask, other_result] = work("other");
    let talk = |line: Line| Line {
        tags: MessageTags::default(),
        ..line
    };
    let [whole_ask, whole_result] = work("whole").map(talk);
    let [twice_ask, twice_result] = work("twice").map(talk).map(|line| Line {
        calls: vec!["twice"; 2],
        ..line
    });
    let lines = [
        talk(result.clone()),
        user("x"),
        talk(ask.clone()),
        talk(ask),
        result,
        user("y"),
        other_ask,
        talk(other_result),
        twice_ask,
        twice_result,
        whole_ask,
        whole_result,
    ];
    let wanted = ["user: x", "user: y", "assistant: call whole", "tool: result whole"];
    check(&json!({"kind": "conversation"}), &lines, &wanted);
}

#[test]
fn results_that_another_execution_brought_stay_with_their_calls() {
    let [ask, result] = work("late").map(|line| Line {
        is_output: false,
        tags: MessageTags::default(),
        ..line
    });
    let brought = |execution| [user("x").of(1), ask.clone().of(1), result.clone().of(execution)];
    let whole = ["user: x", "assistant: call late", "tool: result late"];
    // Of an earlier execution, and as input of the current one.
    for execution in [2, CURRENT] {
        check(&json!({"kind": "last_n", "messages": 1}), &brought(execution), &whole);
        check(
            &json!({"kind": "token_window", "max_tokens": 1}),
            &brought(execution),
            &whole[1..],
        );
    }
}

fn any_line() -> impl Strategy<Value = Line> {
    let ids = prop::sample::subsequence(vec!["a", "b", "c"], 0..3);
    let sections = prop::sample::select(vec!["messages", "messages", "messages", "buffer", "summary"]);
    let covers = prop::option::weighted(0.1, 0..30_u64);
    (0..4_u8, ids, 0..=CURRENT, any::<(bool, bool, bool)>(), sections, covers).prop_map(
        |(role, calls, execution, (is_trace, is_partial, is_output), section, covers)| {
            let role = [Role::User, Role::Assistant, Role::Tool, Role::System][usize::from(role)];
            let calls = if matches!(role, Role::Assistant | Role::Tool) {
                calls
            } else {
                Vec::new()
            };
            let text = if role == Role::Tool && !calls.is_empty() {
                ""
            } else {
                "words"
            };
            let mut line = Line {
                calls,
                execution,
                is_output,
                ..line(role, text)
            };
            line.tags.is_trace = is_trace;
            line.tags.is_partial = is_partial;
            match covers {
                Some(to) => line.covering(to),
                None => line.in_section(section),
            }
        },
    )
}

/// Messages in any order, and among them what a run makes.
pub(super) fn histories() -> impl Strategy<Value = Vec<Line>> {
    let pair = (0..=CURRENT, prop::sample::select(vec!["a", "b"]));
    let pair = pair.prop_map(|(execution, id)| work(id).map(|line| line.of(execution)).to_vec());
    let block = prop_oneof![any_line().prop_map(|line| vec![line]), pair];
    prop::collection::vec(block, 0..25).prop_map(|blocks| blocks.concat())
}

proptest! {
    #[test]
    fn providers_accept_what_any_compiler_makes_of_any_history(
        lines in histories(),
        held_from in 0..30_usize,
        traces in prop::sample::select(vec![Traces::All, Traces::Unfinished, Traces::None]),
        messages in 1..8_u32,
        max_tokens in 1..100_u64,
    ) {
        let state = state(&lines, held_from);
        for config in [
            json!({"kind": "conversation"}),
            json!({"kind": "all_sections"}),
            json!({"kind": "sections", "names": ["messages", "summary"]}),
            json!({"kind": "last_n", "messages": messages}),
            json!({"kind": "token_window", "max_tokens": max_tokens}),
        ] {
            let messages = compiled_with(&config, traces, &state);
            assert_history_valid(&messages);
            let ids: BTreeSet<_> = messages.iter().map(|message| message.id).collect();
            prop_assert_eq!(ids.len(), messages.len(), "a message is sent twice by {}", config);
            let is_summary = |message: &Arc<Message>| message.tags.covers.is_some();
            prop_assert!(!messages.iter().skip(1).any(is_summary), "a summary is sent out of its place by {}", config);
        }
    }
}
