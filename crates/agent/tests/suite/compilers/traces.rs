//! Traces of earlier executions: which of them each compiler sends, as the agent wants.

use agent::compilers::Traces;
use serde_json::json;
use values::message::Role;

use super::{Line, answer, check, compiled, compiled_with, line, state, user, work};
use crate::setup::shown;

/// A finished execution with work, one that was stopped in the middle of an answer after its work,
/// and a third at work.
fn stopped_conversation() -> Vec<Line> {
    let first = [user("one").of(1)].into_iter().chain(work("a").map(|line| line.of(1)));
    let second = [answer("first").of(1), user("two").of(2)].into_iter();
    let second = second.chain(work("b").map(|line| line.of(2)));
    let third = [answer("half an ans").of(2).partial(), user("go on").of(3)].into_iter();
    let third = third.chain(work("c").map(|line| line.of(3)));
    // A final response of the execution itself takes nothing away from its later requests.
    let judged = answer("judged").of(3);
    first.chain(second).chain(third).chain([judged]).collect()
}

#[test]
fn the_work_of_a_stopped_execution_is_sent_until_one_has_a_final_response() {
    let done = ["user: one", "assistant: call a", "tool: result a", "assistant: first"];
    let stopped = [
        "user: two",
        "assistant: call b",
        "tool: result b",
        "assistant: half an ans",
    ];
    let open = [
        "user: go on",
        "assistant: call c",
        "tool: result c",
        "assistant: judged",
    ];
    let without = |talk: &[&'static str]| -> Vec<&'static str> { vec![talk[0], talk[3]] };
    let lines = stopped_conversation();
    for (traces, wanted) in [
        (Traces::All, [&done[..], &stopped, &open].concat()),
        (Traces::Unfinished, [&without(&done)[..], &stopped, &open].concat()),
        (Traces::None, [&without(&done)[..], &without(&stopped), &open].concat()),
    ] {
        for config in [
            json!({"kind": "conversation"}),
            json!({"kind": "all_sections"}),
            json!({"kind": "sections", "names": ["messages"]}),
            json!({"kind": "last_n", "messages": 100}),
            json!({"kind": "token_window", "max_tokens": 1_000}),
        ] {
            let messages = compiled_with(&config, traces, &state(&lines, 0));
            assert_eq!(shown(messages.iter()), wanted, "{config} {traces:?}");
        }
    }
    // Once a later execution has answered, the work is gone.
    let mut lines = lines[..8].to_vec();
    lines[7] = answer("second").of(2);
    lines.push(user("three").of(3));
    let wanted = [
        "user: one",
        "assistant: first",
        "user: two",
        "assistant: second",
        "user: three",
    ];
    check(&json!({"kind": "conversation"}), &lines, &wanted);
}

#[test]
fn completions_of_an_input_end_no_execution() {
    let mut lines = vec![user("one").of(1)];
    lines.extend(work("a").map(|line| line.of(1)));
    // A caller brings what another service has answered.
    lines.extend([line(Role::Assistant, "elsewhere").of(3), user("go on").of(3)]);
    let wanted = [
        "user: one",
        "assistant: call a",
        "tool: result a",
        "assistant: elsewhere",
        "user: go on",
    ];
    check(&json!({"kind": "conversation"}), &lines, &wanted);
}

#[test]
fn few_messages_retain_the_work_of_all_stopped_executions_and_a_size_as_much_as_fits() {
    let mut lines = vec![user("old").of(0), answer("old answer").of(0), user("one").of(1)];
    lines.extend(["a", "b"].into_iter().flat_map(work).map(|line| line.of(1)));
    lines.push(user("two").of(2));
    lines.extend(work("c").map(|line| line.of(2)));
    lines.push(user("go on").of(3));
    let one = [
        "user: one",
        "assistant: call a",
        "tool: result a",
        "assistant: call b",
        "tool: result b",
    ];
    let two = ["user: two", "assistant: call c", "tool: result c"];
    let open = ["user: go on"];
    check(
        &json!({"kind": "last_n", "messages": 1}),
        &lines,
        &[&one[..], &two, &open].concat(),
    );
    let old = ["user: old", "assistant: old answer"];
    check(
        &json!({"kind": "last_n", "messages": 11}),
        &lines,
        &[&old[..], &one, &two, &open].concat(),
    );
    // 10 of the system prompt, 2 of the input, 11 of each call with its result, 1 of each input
    // that asked for them.
    for (max_tokens, wanted) in [
        (12, open.to_vec()),
        (23, open.to_vec()),
        (24, [&two[..], &open].concat()),
        (35, [&two[..], &open].concat()),
        (36, [&one[..1], &one[3..], &two, &open].concat()),
        (46, [&one[..1], &one[3..], &two, &open].concat()),
        (47, [&one[..], &two, &open].concat()),
    ] {
        check(
            &json!({"kind": "token_window", "max_tokens": max_tokens}),
            &lines,
            &wanted,
        );
    }
}

#[test]
fn a_summary_stands_for_the_work_that_it_covers_and_the_rest_is_sent() {
    let mut lines = vec![user("one").of(1)];
    lines.extend(["a", "b"].into_iter().flat_map(work).map(|line| line.of(1)));
    lines.extend([user("so far").of(2).covering(3), user("go on").of(3)]);
    let wanted = ["user: so far", "assistant: call b", "tool: result b", "user: go on"];
    for config in [
        json!({"kind": "conversation"}),
        json!({"kind": "last_n", "messages": 1}),
        json!({"kind": "token_window", "max_tokens": 100}),
    ] {
        check(&config, &lines, &wanted);
        // What is covered need not be there.
        assert_eq!(shown(compiled(&config, &state(&lines, 3)).iter()), wanted, "{config}");
    }
}
