//! Large data is encoded and decoded beside the async workers: while no thread is free there,
//! nothing large is written or read, and all else goes on.

use std::fmt::Debug;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use agent::journal::JournalEntry;
use agent::ports::{ToolDecision, ToolUse};
use agent::record::RunStatus;
use agent::state::{
    AgentContext, AgentState, AgentStep, MessageStore, StateAddition, ToolExecution, ToolTrace, ToolVerdict,
};
use serde_json::json;
use store::queue::{Acceptance, JournalRecord};
use store::runs::RunEnd;
use store::sessions::Commit;
use store::{CommitError, Sessions};
use test_support::databases::Engine;
use test_support::drafts::{now, object, run_end, run_id, run_record, session_id, step, summary, user};
use values::clock::SystemClock;
use values::ids::{AgentId, StepId, ToolExecutionId, UuidV7Source};
use values::json::RawJson;
use values::message::{ContentPart, Message, ProviderFields, ToolCall};
use values::session::EnvironmentState;

use super::fixtures::Fixture;
use crate::sql::queue::fixtures::{delivery, events, failed_end, queued_run};

/// Runs a test with one thread beside the async worker, on SQLite, whose one connection writes in
/// the order of the requests.
fn with_one_thread(test: impl AsyncFnOnce(Fixture)) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async { test(Fixture::new(Engine::Sqlite).await.unwrap()).await });
}

impl Fixture {
    /// Returns the result of large work. It must wait while the thread beside the async worker is
    /// taken, and other work must not.
    async fn beside<T: Debug>(&self, large: impl Future<Output = T>) -> T {
        let (release, held) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || held.recv());
        let mut large = pin!(large);
        tokio::select! {
            biased;
            done = &mut large => panic!("on the async worker: {done:?}"),
            _ = self.root(&["small"]) => {}
        }
        drop(release);
        large.await
    }
}

fn long() -> String {
    "x".repeat(100_000)
}

/// A message that is long in what only its provider reads.
fn with_provider_fields() -> Arc<Message> {
    let fields = vec![("reasoning_details".to_owned(), RawJson::new(json!(long()).to_string()))];
    let provider = "p".to_owned();
    Arc::new(Message {
        provider_fields: Some(ProviderFields {
            provider,
            model: None,
            fields,
        }),
        ..(*user("short")).clone()
    })
}

#[test]
fn a_large_record_is_encoded_beside_the_workers() {
    with_one_thread(async |fixture| {
        let failed = || run_end(run_record(run_id(), session_id(), RunStatus::Failed), vec![step(1)]);
        let changes: [fn(&mut RunEnd); 6] = [
            |end| end.record.output = vec![user(&long())],
            |end| end.record.output = vec![with_provider_fields()],
            |end| end.record.value = Some(json!({"deep": [long()]})),
            |end| end.steps[0].messages = vec![user(&long())],
            |end| end.steps = (1..=1_000).map(step).collect(),
            |end| end.deliveries[0].body = long(),
        ];
        for change in changes {
            let mut end = failed();
            end.deliveries = vec![delivery()];
            change(&mut end);
            let id = end.record.summary.run_id;
            fixture
                .beside(fixture.store.run_record(&fixture.tenant, &end))
                .await
                .unwrap();
            let stored = fixture.run(id).await.unwrap();
            assert_eq!(stored.output, end.record.output);
            let steps = fixture.store.step_list(&fixture.tenant, id).await.unwrap();
            assert_eq!(steps, Some(end.steps));
        }
    });
}

#[test]
fn a_large_end_of_a_queued_run_is_encoded_beside_the_workers() {
    with_one_thread(async |fixture| {
        fixture.enqueue_new().await;
        let leased = fixture.lease_one().await;
        let mut end = failed_end(&leased);
        end.events = events(leased.lease.run_id, 1, 500);
        fixture
            .beside(fixture.store.run_record(&fixture.tenant, &end))
            .await
            .unwrap();
        let read = fixture.store.event_read(&fixture.tenant, leased.lease.run_id, 0, 1_000);
        assert_eq!(read.await.unwrap(), end.events);
    });
}

/// The addition of messages to an empty state.
fn addition(messages: impl IntoIterator<Item = Arc<Message>>) -> StateAddition {
    let empty = AgentState::new(AgentId::generate(&UuidV7Source), now());
    let store = MessageStore::default().with_messages(messages);
    let context = AgentContext {
        store,
        ..AgentContext::default()
    };
    empty.clone().restored(now(), now(), 1, context).since(&empty)
}

/// Entries of a journal of which each is large in another place.
fn large_entries() -> Vec<JournalEntry> {
    let call = |arguments: String| ToolCall {
        id: "c".to_owned(),
        name: "calculator".to_owned(),
        arguments,
        signature: None,
    };
    let decided = |arguments: String, decision: ToolDecision| JournalEntry::CallDecided {
        index: 0,
        tool_use: ToolUse {
            call: call(arguments),
            decision,
            approved: None,
            continuation: None,
        },
        addition: addition([]),
    };
    let mut step = AgentStep::new(StepId::generate(&UuidV7Source), [].into());
    step.output_messages = vec![user(&long())];
    let execution = ToolExecution {
        id: ToolExecutionId::generate(&UuidV7Source),
        call: call("{}".to_owned()),
        content: vec![ContentPart::text(long())],
        error: None,
        started_at: now(),
        completed_at: now(),
        verdict: ToolVerdict::Executed,
        is_foreign: false,
        trace: ToolTrace::default(),
    };
    let content = vec![ContentPart::text(long())];
    vec![
        JournalEntry::Reached(addition([user(&long())])),
        JournalEntry::CallsRequested {
            step: Box::new(step),
            started_at: now(),
            addition: addition([]),
        },
        decided(long(), ToolDecision::Execute),
        decided(
            String::new(),
            ToolDecision::Supply {
                content,
                is_error: false,
            },
        ),
        JournalEntry::CallEnded {
            index: 0,
            execution: Box::new(execution),
            addition: addition([]),
        },
    ]
}

#[test]
fn a_large_journal_is_encoded_and_decoded_beside_the_workers() {
    with_one_thread(async |fixture| {
        for entry in large_entries() {
            let run = fixture.enqueue_new().await;
            let lease = fixture.lease_one().await.lease;
            let records = [JournalRecord {
                sequence: 1,
                scope: String::new(),
                entry,
                tree: None,
            }];
            let append = fixture.store.progress_append(&lease, &records, &[]);
            assert!(fixture.beside(append).await.unwrap());
            let read = fixture.store.journal_read(&fixture.tenant, run.summary.run_id);
            assert_eq!(fixture.beside(read).await.unwrap(), records);
        }
    });
}

#[test]
fn a_large_request_is_encoded_beside_the_workers() {
    with_one_thread(async |fixture| {
        let mut run = queued_run(&fixture.tenant);
        run.request = long();
        let accepted = fixture.beside(fixture.store.run_accept(&run)).await.unwrap();
        assert!(matches!(accepted, Acceptance::Accepted { .. }), "{accepted:?}");
        assert_eq!(fixture.lease_one().await.request.read(), Ok(run.request));
    });
}

#[test]
fn many_events_are_encoded_and_decoded_beside_the_workers() {
    with_one_thread(async |fixture| {
        let run = fixture.enqueue_new().await.summary.run_id;
        let lease = fixture.lease_one().await.lease;
        let events = events(run, 1, 500);
        assert!(
            fixture
                .beside(fixture.store.progress_append(&lease, &[], &events))
                .await
                .unwrap()
        );
        let read = fixture.store.event_read(&fixture.tenant, run, 0, 1_000);
        assert_eq!(fixture.beside(read).await.unwrap(), events);
    });
}

fn large_environment() -> Arc<EnvironmentState> {
    let state = json!({"variables": {}, "resources": {"workspace": [long()]}});
    Arc::new(serde_json::from_value(state).unwrap())
}

#[test]
fn a_large_commit_is_checked_and_encoded_beside_the_workers() {
    with_one_thread(async |fixture| {
        let changes: [fn(&mut Commit); 7] = [
            |commit| commit.draft.history = commit.draft.history.clone().with_message(user(&long())),
            |commit| commit.draft.history = commit.draft.history.clone().with_message(with_provider_fields()),
            |commit| commit.draft.environment = large_environment(),
            |commit| commit.draft.context.stored.system_prompt = long(),
            |commit| commit.draft.context.stored.other = object(json!({"later": [long()]})),
            |commit| commit.run.as_mut().unwrap().steps[0].messages = vec![user(&long())],
            |commit| commit.run.as_mut().unwrap().record.value = Some(json!([long()])),
        ];
        for change in changes {
            let mut commit = fixture.commit(None, &["root"]);
            change(&mut commit);
            let published = fixture.beside(fixture.store.session_commit(&commit)).await.unwrap();
            assert_eq!(fixture.load(commit.draft.session_id).await, published.session);
        }
    });
}

#[test]
fn what_a_summary_leaves_is_counted_beside_the_workers() {
    with_one_thread(async |fixture| {
        let root = fixture.root(&["old", &long()]).await;
        let commit = fixture.commit_of(Some(&root), vec![summary("brief", 0, 1)]);
        let published = fixture.beside(fixture.store.session_commit(&commit)).await.unwrap();
        let loaded = fixture.load(commit.draft.session_id).await;
        assert_eq!(loaded, published.session);
        assert_eq!(loaded.history.bytes(), published.session.history.bytes());
    });
}

#[test]
fn a_large_environment_of_the_parent_is_not_encoded_again() {
    with_one_thread(async |fixture| {
        let mut commit = fixture.commit(None, &["root"]);
        commit.draft.environment = large_environment();
        let root = fixture.publish(&commit).await;
        let (release, held) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || held.recv());
        let publishing = async {
            fixture.child(&root, &["shared"]).await;
            let mut equal = fixture.commit(Some(&root), &["equal"]);
            equal.draft.environment = large_environment();
            fixture.publish(&equal).await;
        };
        let published = tokio::time::timeout(Duration::from_secs(20), publishing).await;
        published.expect("nothing large is written");
        drop(release);
    });
}

#[test]
fn the_size_of_a_large_part_is_checked_beside_the_workers() {
    with_one_thread(async |fixture| {
        let sessions = Sessions::new(Arc::clone(&fixture.store), 1 << 20, Arc::new(SystemClock));
        let sessions = sessions.with_max_part_bytes(90_000);
        let mut commit = fixture.commit(None, &["root"]);
        commit.draft.environment = large_environment();
        let refused = fixture.beside(sessions.commit(&commit)).await.unwrap_err();
        assert!(matches!(refused, CommitError::TooLarge(_)), "{refused:?}");
        assert_eq!(
            refused.to_string(),
            "the session's environment has more than 90000 bytes of JSON, which is the most that is allowed"
        );
    });
}
