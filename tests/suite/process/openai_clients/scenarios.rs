//! The scenarios that every client plays: one with the Responses API, and one with Chat
//! Completions.

use super::{World, sessions};

macro_rules! clients {
    ($($name:ident: $script:literal sends_results $to:ident,)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                uses_responses($script, Results::$to).await;
                uses_chat_completions($script).await;
            }
        )+
    };
}

clients! {
    openai_for_python: "with_openai.py" sends_results ToResponse,
    openai_for_node: "with_openai.mjs" sends_results ToResponse,
    the_agents_sdk: "with_agents.py" sends_results InHistory,
    langchain: "with_langchain.py" sends_results ToResponse,
    litellm: "with_litellm.py" sends_results ToResponse,
    pydantic_ai: "with_pydantic_ai.py" sends_results ToResponse,
    the_ai_sdk: "with_ai_sdk.mjs" sends_results InHistory,
}

/// How a client sends the results of its tools.
#[derive(Debug, Clone, Copy)]
enum Results {
    /// It continues the response with the calls.
    ToResponse,
    /// It sends the whole history, with the calls and their results.
    InHistory,
}

/// Requests to the model that are the same in both scenarios: own tools, the caller's tools, and a
/// structured output.
const COMMON: [&str; 5] = [
    "system: You compute. | user: compute",
    "system: You compute. | user: compute | assistant: calls calculator | tool: 42",
    "system: You help. | user: weather",
    "system: You help. | user: weather | assistant: calls weather | tool: sunny",
    "system: You help. | user: structured",
];

async fn uses_responses(script: &str, results: Results) {
    let world = World::start().await;
    if world.play(script, "responses").is_none() {
        return;
    }
    let first = [
        "system: You help.\n\nBe brief. | user: Hello",
        // The instructions were for one response only.
        "system: You help. | user: Hello | assistant: echo: Hello | user: And again",
        "system: You help. | user: Hello | assistant: echo: Hello | user: Another way",
    ];
    let last = [
        "system: You help. | user: Remember 17",
        "system: You help. | user: Remember 17 | assistant: echo: Remember 17 | user: And now?",
    ];
    assert_eq!(world.asked(), [&first[..], &COMMON, &last].concat());

    let answered = match results {
        Results::ToResponse => Some(4),
        Results::InHistory => None,
    };
    let structured = r#"user: structured | assistant: {"city": "Bern", "degrees": 21}"#;
    let expected = [
        (None, "user: Hello | assistant: echo: Hello"),
        (
            Some(0),
            "user: Hello | assistant: echo: Hello | user: And again | assistant: echo: And again",
        ),
        (
            Some(0),
            "user: Hello | assistant: echo: Hello | user: Another way | assistant: echo: Another way",
        ),
        (
            None,
            "user: compute | assistant: calls calculator | tool: 42 | assistant: It is 42.",
        ),
        // The open step is not part of the history yet.
        (None, "user: weather"),
        (
            answered,
            "user: weather | assistant: calls weather | tool: sunny | assistant: The tool said: sunny",
        ),
        (None, structured),
        (None, "user: Remember 17 | assistant: echo: Remember 17"),
        (
            None,
            "user: Remember 17 | assistant: echo: Remember 17 | user: And now? | assistant: echo: And now?",
        ),
    ];
    let expected = expected.map(|(parent, messages)| (parent, messages.to_owned()));
    assert_eq!(sessions(&world.service).await, expected);
    world.service.stop().await;
}

async fn uses_chat_completions(script: &str) {
    let world = World::start().await;
    if world.play(script, "chat").is_none() {
        return;
    }
    let first = [
        "system: You help. | user: Hello",
        "system: You help. | user: Hello | assistant: echo: Hello | user: And again",
    ];
    assert_eq!(world.asked(), [&first[..], &COMMON].concat());
    assert_eq!(sessions(&world.service).await, [], "nothing is stored without a thread");
    world.service.stop().await;
}
