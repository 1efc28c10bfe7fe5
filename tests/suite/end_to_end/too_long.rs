//! The hook `summarisation` understands every server that finds a conversation too long.

use agent::ports::ModelErrorClass;
use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::error_answers::error_answers;

use super::compaction::{id, is_summary, long, said, start};
use super::on_every_store;
use crate::support::mock_model::{MockModel, Reply, last_user_text};

on_every_store!(every_server_s_words_for_a_conversation_that_is_too_long_are_understood);

async fn every_server_s_words_for_a_conversation_that_is_too_long_are_understood(database: TestDatabase) {
    let answers = error_answers().into_iter();
    let answers: Vec<_> = answers
        .filter(|answer| answer.class == ModelErrorClass::Context)
        .collect();
    let words = answers.clone();
    let mock = MockModel::start(move |request| {
        if is_summary(request) {
            return Reply::text("short");
        }
        let number = last_user_text(request).strip_prefix("two ").map(str::to_owned);
        match number.filter(|_| !request.to_string().contains("short")) {
            Some(number) => {
                let answer = &words[number.parse::<usize>().unwrap()];
                Reply::Status(answer.status, answer.body.clone())
            }
            None => Reply::text("fine"),
        }
    })
    .await;
    let app = start(&database, &mock, json!({"context_window": 1_000_000})).await;
    let first = app.run(None, &long("one", 20)).await;
    for (number, answer) in answers.iter().enumerate() {
        let run = app.run(Some(id(&first)), &format!("two {number}")).await;
        assert_eq!(run["status"], "completed", "{answer:?}: {run:#}");
        assert_eq!(run["step_count"], 2, "{answer:?}");
        assert_eq!(said(mock.requests().last().unwrap())[0], "user: <short>", "{answer:?}");
    }
    assert_eq!(mock.asked(), 1 + 3 * answers.len(), "a try, a summary and a second try");
    app.finish().await;
}
