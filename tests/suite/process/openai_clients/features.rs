//! What the official client does beyond the common scenarios: stored responses, conversations,
//! approvals, threads of Chat Completions, and errors.

use super::{Stored, World, line, sessions};

const SCRIPT: &str = "with_openai.py";

/// Plays a scenario, and returns the requests to the model and the stored sessions; `None` if the
/// client is neither there nor required.
async fn played(scenario: &str) -> Option<(Vec<String>, Vec<Stored>)> {
    let world = World::start().await;
    world.play(SCRIPT, scenario)?;
    let left = (world.asked(), sessions(&world.service).await);
    world.service.stop().await;
    Some(left)
}

fn texts(sessions: &[Stored]) -> Vec<(Option<usize>, &str)> {
    let sessions = sessions.iter();
    sessions.map(|(parent, text)| (*parent, text.as_str())).collect()
}

const GREETED: &str = "user: Hello | assistant: echo: Hello";
const GREETED_TWICE: &str = "user: Hello | assistant: echo: Hello | user: And again | assistant: echo: And again";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_is_retrieved_as_it_was_made_and_deleted_with_its_session() {
    let Some((asked, left)) = played("stored").await else {
        return;
    };
    assert_eq!(asked.len(), 3);
    assert_eq!(
        texts(&left),
        [(None, "user: And again | assistant: echo: And again")],
        "the first session is deleted, and the last run has none"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_is_a_thread() {
    let Some((_, left)) = played("conversation").await else {
        return;
    };
    assert_eq!(texts(&left), [(None, GREETED), (Some(0), GREETED_TWICE)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agents_sdk_stores_its_sessions_as_conversations() {
    let world = World::start().await;
    let Some(printed) = world.play("with_agents.py", "session") else {
        return;
    };
    let computed = "user: Hello | assistant: echo: Hello | user: compute | assistant: calls calculator | tool: 42";
    let weather = format!("{computed} | assistant: It is 42. | user: weather");
    let again = format!("{weather} | assistant: calls weather | tool: sunny | user: And again");
    let asked = world.asked();
    assert_eq!(asked.len(), 6);
    assert_eq!(asked[2], format!("system: You compute. | {computed}"));
    assert_eq!(asked[3], format!("system: You help. | {weather}"));
    assert_eq!(asked[5], format!("system: You help. | {again}"));
    // The sessions of the conversation stay after it.
    let conversation = printed.lines().find(|line| line.starts_with("conv_")).unwrap();
    let list = world.service.get(&format!("/v1/sessions?thread={conversation}")).await;
    let newest = list["data"][0]["session_id"].as_str().unwrap();
    let session = world.service.get(&format!("/v1/sessions/{newest}")).await;
    let messages = &session["message_history_state"]["messages"];
    assert_eq!(line(messages), format!("{again} | assistant: echo: And again"));
    world.service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_request_is_answered_in_two_branches() {
    let Some((_, left)) = played("approvals").await else {
        return;
    };
    let left = texts(&left);
    let [(None, waiting), (Some(0), approved), (Some(0), denied)] = &left[..] else {
        panic!("{left:#?}");
    };
    assert_eq!(*waiting, "user: compute");
    let computed = "user: compute | assistant: calls calculator | tool: 42 | assistant: It is 42.";
    assert_eq!(*approved, computed);
    assert!(denied.ends_with("| assistant: Nothing is computed."), "{denied}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chat_completions_continue_a_thread_that_a_header_names() {
    let Some((asked, left)) = played("thread").await else {
        return;
    };
    let second = "system: You compute. | user: Hello | assistant: echo: Hello | user: And again";
    assert_eq!(asked, ["system: You compute. | user: Hello", second]);
    assert_eq!(texts(&left), [(None, GREETED), (Some(0), GREETED_TWICE)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_have_classes_and_codes_and_are_not_repeated() {
    let Some((asked, left)) = played("errors").await else {
        return;
    };
    let failed = "system: You help. | user: fail";
    assert_eq!(asked, ["system: You help. | user: weather", failed, failed]);
    assert_eq!(texts(&left), [(None, "user: weather")]);
}
