//! Messages, bundles and stores that the benchmarks share.

use std::sync::Arc;
use std::time::Duration;

use agent::definition::Durability;
use agent::record::{RunMode, RunRecord, RunStatus, RunSummary};
use store::runs::RunEnd;
use store::sessions::{Commit, ConflictPolicy};
use store::{self, Store, StoreSettings};
use values::clock::{Clock as _, SystemClock};
use values::ids::{AgentId, BranchId, MessageId, RunId, SessionId, UuidV7Source};
use values::json::{Object, Unread};
use values::message::{Coverage, Message, MessageTags, Role, Section};
use values::model_ref::ResponseFormat;
use values::session::{Bundle, BundleDraft, ContextState, EnvironmentState, StoredContext, ToolPins};
use values::tenant::TenantId;
use values::usage::Usage;

const QUESTION: &str = "Which of the two routes to the coast is shorter, and does it have a place to rest on the way?";
const ANSWER: &str = "The one along the river is 12 km shorter. After about an hour it passes a village with two inns; the \
    one by the bridge opens at eleven. The other route has no position to stop, but it is open in winter.";

/// Returns a message of the user for an even index, and one of the model for an odd one.
pub(crate) fn message(index: usize) -> Arc<Message> {
    let (role, text) = if index.is_multiple_of(2) {
        (Role::User, QUESTION)
    } else {
        (Role::Assistant, ANSWER)
    };
    let id = MessageId::generate(&UuidV7Source);
    Arc::new(Message::text(id, role, format!("{text} ({index})"), SystemClock.now()))
}

/// Returns so many messages.
pub(crate) fn messages(number: usize) -> Vec<Arc<Message>> {
    (0..number).map(message).collect()
}

/// Opens a store with its tables made.
pub(crate) async fn open(url: &str) -> Arc<dyn Store> {
    let settings = StoreSettings {
        max_connections: 4,
        acquire_timeout: Duration::from_secs(5),
        migrate: true,
        listen_url: None,
        observer: None,
    };
    store::open(url, settings).await.unwrap()
}

/// Makes the commit of a run of one turn on the parent.
pub(crate) fn turn(parent: Option<&Arc<Bundle>>) -> Commit {
    let history = parent.map(|parent| parent.history.clone()).unwrap_or_default();
    let length = history.len();
    let (question, answer) = (message(length), message(length + 1));
    let draft = BundleDraft {
        session_id: SessionId::generate(&UuidV7Source),
        parent: parent.cloned(),
        merged_session_id: None,
        environment_session_id: None,
        run_id: Some(RunId::generate(&UuidV7Source)),
        run_status: None,
        subagent_of: None,
        agent: "bench".to_owned(),
        agent_version: None,
        environment: parent.map_or_else(
            || Arc::new(EnvironmentState::default()),
            |parent| Arc::clone(&parent.environment),
        ),
        context: context(parent),
        history: history.with_messages([question, Arc::clone(&answer)]),
        new_branch_id: BranchId::generate(&UuidV7Source),
    };
    Commit {
        tenant: TenantId::anonymous(),
        run: Some(RunEnd {
            record: record(&draft, answer),
            steps: Vec::new(),
            lease: None,
            events: Vec::new(),
            applied: Vec::new(),
            deliveries: Vec::new(),
            is_metered: false,
        }),
        thread: None,
        draft,
        conflict: ConflictPolicy::Fork,
        children: Vec::new(),
        environment_from: None,
    }
}

/// Makes the commit of a summary of all but the newest messages.
pub(crate) fn compaction(parent: &Arc<Bundle>, retained: usize) -> Commit {
    let length = parent.history.len();
    let mut commit = turn(Some(parent));
    let id = MessageId::generate(&UuidV7Source);
    let tags = MessageTags {
        section: Section::new(Section::SUMMARY),
        covers: Some(Coverage {
            from: 0,
            to: (length - retained) as u64,
        }),
        ..MessageTags::default()
    };
    let summary = Message::text(
        id,
        Role::User,
        "They talk about two routes to the coast.",
        SystemClock.now(),
    );
    commit.draft.history = parent.history.clone().with_message(Arc::new(summary.with_tags(tags)));
    commit
}

/// Commits turns on the parent and returns the tip.
pub(crate) async fn grow(store: &dyn Store, mut tip: Option<Arc<Bundle>>, turns: usize) -> Arc<Bundle> {
    for _ in 0..turns {
        let committed = store.session_commit(&turn(tip.as_ref())).await.unwrap();
        tip = Some(Arc::new(committed.session));
    }
    tip.unwrap()
}

fn context(parent: Option<&Arc<Bundle>>) -> ContextState {
    let now = SystemClock.now();
    let stored = parent.map_or_else(
        || StoredContext {
            agent_id: AgentId::generate(&UuidV7Source),
            parent_agent_id: None,
            created_at: now,
            model: None,
            system_prompt: "You answer in a few words.".to_owned(),
            response_format: ResponseFormat::default(),
            overrides: None,
            waiting: None,
            remembered_approvals: Vec::new(),
            tool_pins: ToolPins::default(),
            other: Object::new(),
            unread: Unread::default(),
        },
        |parent| (*parent.context).clone(),
    );
    ContextState {
        stored,
        metadata: Object::new(),
        execution_count: parent.map_or(0, |parent| parent.head.execution_count) + 1,
        updated_at: now,
    }
}

fn record(draft: &BundleDraft, answer: Arc<Message>) -> RunRecord {
    let now = SystemClock.now();
    let summary = RunSummary {
        run_id: draft.run_id.unwrap(),
        session_id: draft.session_id,
        publishes: true,
        base_session_id: draft.parent.as_ref().map(|parent| parent.head.session_id),
        agent: draft.agent.clone(),
        agent_version: None,
        model: "demo/bench".parse().unwrap(),
        answered_by: None,
        mode: RunMode::Sync,
        durability: Durability::Session,
        thread: None,
        thread_moved: None,
        answer_run_id: None,
        attempts: 1,
        status: RunStatus::Completed,
        stop_reason: None,
        usage: Usage::default(),
        step_count: 1,
        event_count: 12,
        error: None,
        metadata: Object::new(),
        created_by: None,
        created_at: now,
        started_at: Some(now),
        completed_at: Some(now),
    };
    RunRecord {
        summary,
        input: Arc::default(),
        output: vec![answer],
        value: None,
        finish_reason: None,
        stop_signal: None,
        open_calls: Vec::new(),
        echo: None,
        is_hidden: false,
    }
}
