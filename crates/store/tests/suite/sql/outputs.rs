//! The output of a run is stored once: its record refers to the messages of its session.

use agent::record::RunRecord;
use agent::state::FinishReason;
use store::StoreError;
use store::sessions::Commit;
use test_support::drafts::{call, result, user};

use crate::fixtures::Fixture;

on_both_engines!(
    an_output_that_ends_the_session_is_stored_once,
    an_output_of_a_fork_is_read_from_the_fork,
    an_output_beside_the_session_is_stored_with_the_run,
    an_output_that_is_lost_is_an_error_of_its_column
);

/// Makes the last messages of the session the output of its run, without anything else.
fn with_output(mut commit: Commit, messages: usize) -> (Commit, RunRecord) {
    let new: Vec<_> = commit.draft.new_messages().cloned().collect();
    let record = &mut commit.run.as_mut().unwrap().record;
    record.output = new[new.len() - messages..].to_vec();
    record.value = None;
    record.finish_reason = Some(FinishReason::Stop);
    let record = record.clone();
    (commit, record)
}

/// Publishes the session and checks that its run is read as it was written. Returns how many
/// messages of the session its record refers to, and how many bytes the output takes.
async fn published(fixture: &Fixture, commit: &Commit, record: &RunRecord) -> (Option<i64>, i64) {
    fixture.publish(commit).await;
    let run_id = record.summary.run_id;
    let found = fixture.run(run_id).await;
    assert_eq!(found.as_ref(), Some(record));
    let of_newest = async |column| {
        let statement = format!("select cast({column} as bigint) from runs order by run_id desc limit 1");
        fixture.database.number(&statement).await
    };
    let count = of_newest("coalesce(output_messages, -1)").await;
    ((count >= 0).then_some(count), of_newest("length(output)").await)
}

async fn an_output_that_ends_the_session_is_stored_once(fixture: Fixture) {
    let (commit, record) = with_output(fixture.commit(None, &["question", "answer"]), 1);
    assert_eq!(published(&fixture, &commit, &record).await, (Some(1), 0));

    let (commit, record) = with_output(fixture.commit(None, &["question", "answer", "and more"]), 2);
    assert_eq!(published(&fixture, &commit, &record).await, (Some(2), 0));

    // A value stays with the run.
    let (mut commit, mut record) = with_output(fixture.commit(None, &["question", "answer"]), 1);
    record.value = Some(serde_json::json!({"sum": 2}));
    commit.run.as_mut().unwrap().record = record.clone();
    let json = r#"{"value":{"sum":2}}"#.len();
    assert_eq!(
        published(&fixture, &commit, &record).await,
        (Some(1), i64::try_from(json).unwrap())
    );

    // Nothing was put out, so there is nothing to refer to.
    let (commit, record) = with_output(fixture.commit(None, &["question"]), 0);
    assert_eq!(published(&fixture, &commit, &record).await, (None, 0));
}

async fn an_output_of_a_fork_is_read_from_the_fork(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    for answer in ["one answer", "another answer"] {
        let (commit, record) = with_output(fixture.commit(Some(&root), &["question", answer]), 1);
        assert_eq!(published(&fixture, &commit, &record).await, (Some(1), 0));
    }
    assert_eq!(fixture.count("history_branches").await, 2);
}

async fn an_output_beside_the_session_is_stored_with_the_run(fixture: Fixture) {
    // The session's messages take many times the bytes of the answer.
    let question = "long ".repeat(10_000);
    let (commit, record) = with_output(fixture.commit(None, &[&question, "answer"]), 1);
    let (refers_to, bytes) = published(&fixture, &commit, &record).await;
    assert!(refers_to.is_none() && bytes > 0, "{refers_to:?}, {bytes}");

    // The output is no end of the session's messages.
    let messages = vec![user("question"), call("a"), result("a"), user("answer")];
    let (mut commit, mut record) = with_output(fixture.commit_of(None, messages), 3);
    record.output.pop();
    commit.run.as_mut().unwrap().record = record.clone();
    let (refers_to, bytes) = published(&fixture, &commit, &record).await;
    assert!(refers_to.is_none() && bytes > 0, "{refers_to:?}, {bytes}");

    // Messages of the session that it continues are not its own.
    let root = fixture.root(&["root"]).await;
    let (mut commit, mut record) = with_output(fixture.commit(Some(&root), &["answer"]), 1);
    record.output = commit.draft.history.iter_from(0).cloned().collect();
    commit.run.as_mut().unwrap().record = record.clone();
    let (refers_to, bytes) = published(&fixture, &commit, &record).await;
    assert!(refers_to.is_none() && bytes > 0, "{refers_to:?}, {bytes}");
}

async fn an_output_that_is_lost_is_an_error_of_its_column(fixture: Fixture) {
    let (commit, record) = with_output(fixture.commit(None, &["question", "answer"]), 1);
    fixture.publish(&commit).await;
    for damage in [
        "update runs set output_messages = 3",
        "update runs set output_messages = -1",
        "delete from history_segments",
    ] {
        fixture.execute(damage).await;
        let error = fixture
            .store
            .run_lookup(&fixture.tenant, record.summary.run_id)
            .await
            .unwrap_err();
        let StoreError::Corrupt { table, column, id, .. } = &error else {
            panic!("{damage}: {error}");
        };
        let run_id = record.summary.run_id.to_string();
        assert_eq!((*table, *column, id), ("runs", "output_messages", &run_id), "{damage}");
    }
}
