//! Pages of others, unmodified, in a browser: from another origin, with the libraries that people
//! use. `tests/faces` has the pages and what people do on them.

use test_support::languages::face_tools;

use super::browser::run_checks;

#[test]
fn people_talk_to_an_agent_with_use_chat() {
    run("ai_sdk/journeys.test.js");
}

#[test]
fn a_page_with_use_chat_answers_calls() {
    run("ai_sdk/answers.test.js");
}

#[test]
fn a_page_with_use_chat_is_loaded_again_and_stopped_and_outlives_a_killed_worker() {
    run("ai_sdk/streams.test.js");
}

#[test]
fn a_forged_page_with_use_chat_does_nothing() {
    run("ai_sdk/forged.test.js");
}

#[test]
fn people_talk_to_an_agent_with_ag_ui() {
    run("ag_ui/journeys.test.js");
}

#[test]
fn a_page_with_ag_ui_answers_calls() {
    run("ag_ui/answers.test.js");
}

#[test]
fn a_page_with_ag_ui_is_loaded_again_and_stopped_and_outlives_a_killed_worker() {
    run("ag_ui/streams.test.js");
}

#[test]
fn a_forged_page_with_ag_ui_does_nothing() {
    run("ag_ui/forged.test.js");
}

#[test]
fn people_talk_to_an_agent_with_use_stream() {
    run("langgraph/journeys.test.js");
}

#[test]
fn a_page_with_use_stream_answers_interrupts() {
    run("langgraph/answers.test.js");
}

#[test]
fn a_page_with_use_stream_is_loaded_again_and_stopped_and_outlives_a_killed_worker() {
    run("langgraph/streams.test.js");
}

#[test]
fn a_forged_page_with_use_stream_does_nothing() {
    run("langgraph/forged.test.js");
}

#[test]
fn programs_use_the_client_of_langgraph() {
    run("langgraph/client.test.js");
}

/// Runs a file of `tests/faces`.
fn run(file: &str) {
    let Some(tools) = face_tools() else { return };
    run_checks(&tools, "AGENT_RUNTIME_TEST_FACES_NODE", &format!("tests/faces/{file}"));
}
