//! Rows of `sessions`, alone and with their two states.

use std::sync::Arc;

use uuid::Uuid;

use super::{PayloadRow, RowName, StoredTime, row, stored_count, table_row};
use crate::codec::{
    DecodeError, SESSION_VERSION, StoredPayload, check_version, decode_context, decode_environment, full_length,
};
use crate::error::StoreError;
use crate::sessions::{SessionTree, TreeFigures};
use values::ids::{AgentId, BranchId, RunId, SessionId};
use values::session::{
    AgentInstance, BranchPosition, Bundle, EnvironmentState, Hash, History, RunOutcome, SessionHead, StoredContext,
    title_of,
};

table_row! {
    columns of "s";
    /// A session without its payloads.
    #[derive(Debug)]
    pub(crate) struct SessionRow {
        session_id: Uuid,
        parent_session_id: Option<Uuid>,
        root_session_id: Uuid,
        merged_session_id: Option<Uuid>,
        environment_session_id: Option<Uuid>,
        run_id: Option<Uuid>,
        subagent_of: Option<Uuid>,
        agent_id: Uuid,
        branch_id: Uuid,
        position: i64,
        depth: i64,
        execution_count: i64,
        message_count: i64,
        history_start: i64,
        created_at: StoredTime,
        agent_created_at: StoredTime,
        schema_version: i16,
        has_files_changed: bool,
        agent: String,
        agent_version: Option<Vec<u8>>,
        run_status: Option<String>,
        thread: Option<String>,
        root_hash: Vec<u8>,
        environment_hash: Vec<u8>,
        context_hash: Vec<u8>,
        segment_hash: Vec<u8>,
        metadata: String,
        preview: Option<String>,
    }
}

impl SessionRow {
    /// Creates the row of a session at a position, with its metadata as JSON.
    pub(crate) fn new(head: &SessionHead, position: BranchPosition, metadata: &str) -> Self {
        let bytes = |hash: Hash| hash.as_bytes().to_vec();
        Self {
            session_id: head.session_id.as_uuid(),
            parent_session_id: head.parent_session_id.map(SessionId::as_uuid),
            root_session_id: head.root_session_id.as_uuid(),
            merged_session_id: head.merged_session_id.map(SessionId::as_uuid),
            environment_session_id: head.environment_session_id.map(SessionId::as_uuid),
            run_id: head.run_id.map(RunId::as_uuid),
            subagent_of: head.subagent_of.map(SessionId::as_uuid),
            agent_id: head.agent_instance.agent_id.as_uuid(),
            branch_id: position.branch_id.as_uuid(),
            position: stored_count(position.position),
            depth: stored_count(head.depth),
            execution_count: stored_count(head.execution_count),
            message_count: stored_count(head.message_count),
            history_start: stored_count(head.history_start),
            created_at: StoredTime(head.created_at),
            agent_created_at: StoredTime(head.agent_instance.created_at),
            schema_version: SESSION_VERSION,
            has_files_changed: head.has_files_changed,
            agent: head.agent.clone(),
            agent_version: head.agent_version.map(bytes),
            run_status: head.run_status.map(|status| status.as_str().to_owned()),
            thread: head.thread.clone(),
            root_hash: bytes(head.root_hash),
            environment_hash: bytes(head.environment_hash),
            context_hash: bytes(head.context_hash),
            segment_hash: bytes(head.segment_hash),
            metadata: metadata.to_owned(),
            preview: head.preview.clone(),
        }
    }
}

impl TryFrom<SessionRow> for SessionHead {
    type Error = StoreError;

    fn try_from(row: SessionRow) -> Result<Self, StoreError> {
        let name = RowName::new("sessions", &row.session_id);
        check_version(row.schema_version, SESSION_VERSION).map_err(|error| name.undecodable("metadata", error))?;
        let agent_version = row
            .agent_version
            .map(|hash| name.hash("agent_version", &hash))
            .transpose()?;
        let metadata = name.json("metadata", &row.metadata)?;
        Ok(Self {
            session_id: SessionId::from_uuid(row.session_id),
            parent_session_id: row.parent_session_id.map(SessionId::from_uuid),
            root_session_id: SessionId::from_uuid(row.root_session_id),
            merged_session_id: row.merged_session_id.map(SessionId::from_uuid),
            environment_session_id: row.environment_session_id.map(SessionId::from_uuid),
            run_id: row.run_id.map(RunId::from_uuid),
            // A status of a later version is read as none.
            run_status: row.run_status.as_deref().and_then(RunOutcome::find),
            subagent_of: row.subagent_of.map(SessionId::from_uuid),
            thread: row.thread,
            agent: row.agent,
            agent_version,
            agent_instance: AgentInstance {
                agent_id: AgentId::from_uuid(row.agent_id),
                created_at: row.agent_created_at.0,
            },
            depth: name.count("depth", row.depth)?,
            execution_count: name.count("execution_count", row.execution_count)?,
            message_count: name.count("message_count", row.message_count)?,
            history_start: name.count("history_start", row.history_start)?,
            root_hash: name.hash("root_hash", &row.root_hash)?,
            environment_hash: name.hash("environment_hash", &row.environment_hash)?,
            context_hash: name.hash("context_hash", &row.context_hash)?,
            segment_hash: name.hash("segment_hash", &row.segment_hash)?,
            title: title_of(&metadata),
            metadata,
            preview: row.preview,
            has_files_changed: row.has_files_changed,
            created_at: row.created_at.0,
            position: BranchPosition {
                branch_id: BranchId::from_uuid(row.branch_id),
                position: name.count("position", row.position)?,
            },
        })
    }
}

row! {
    /// A tree of sessions.
    #[derive(Debug)]
    pub(crate) struct SessionTreeRow {
        session_count: i64,
        last_activity_at: StoredTime,
        /// The names, separated by spaces. No name has one.
        threads: Option<String>,
        ;
        oldest: SessionRow,
    }
}

impl TryFrom<SessionTreeRow> for SessionTree {
    type Error = StoreError;

    fn try_from(row: SessionTreeRow) -> Result<Self, StoreError> {
        let name = RowName::new("sessions", &row.oldest.root_session_id);
        let threads = row.threads.as_deref().unwrap_or_default().split_whitespace();
        let threads: Result<Vec<_>, _> = threads.map(|thread| name.parse("thread", thread)).collect();
        Ok(Self {
            figures: TreeFigures {
                session_count: name.count("session_count", row.session_count)?,
                last_activity_at: row.last_activity_at.0,
                threads: threads?,
            },
            oldest: row.oldest.try_into()?,
        })
    }
}

row! {
    /// A session with its two states. A state is `None` only if its row is lost.
    #[derive(Debug)]
    pub(crate) struct BundleRow {
        ;
        head: SessionRow,
        states: StatesRow,
    }
}

row! {
    #[derive(Debug)]
    struct StatesRow {
        environment_version: Option<i16>,
        environment_encoding: Option<i16>,
        environment_payload: Option<Vec<u8>>,
        context_version: Option<i16>,
        context_encoding: Option<i16>,
        context_payload: Option<Vec<u8>>,
    }
}

impl BundleRow {
    /// Returns the bytes of the states as JSON.
    pub(crate) fn state_bytes(&self) -> u64 {
        let states = &self.states;
        let environment = (states.environment_encoding, &states.environment_payload);
        let context = (states.context_encoding, &states.context_payload);
        let length = |(encoding, payload): (Option<i16>, &Option<Vec<u8>>)| {
            let (encoding, payload) = encoding.zip(payload.as_ref())?;
            Some(full_length(encoding, payload, payload.len() as u64))
        };
        [environment, context].into_iter().filter_map(length).sum()
    }

    /// Decodes everything except the history.
    pub(crate) fn into_parts(self) -> Result<BundleParts, StoreError> {
        let head = SessionHead::try_from(self.head)?;
        let states = self.states;
        let environment = (
            states.environment_version,
            states.environment_encoding,
            states.environment_payload,
        );
        let context = (states.context_version, states.context_encoding, states.context_payload);
        Ok(BundleParts {
            environment: decode_state(head.environment_hash, environment, decode_environment)?,
            context: decode_state(head.context_hash, context, |stored| {
                decode_context(stored, head.agent_instance)
            })?,
            head,
        })
    }
}

fn decode_state<T>(
    hash: Hash,
    columns: (Option<i16>, Option<i16>, Option<Vec<u8>>),
    decode: impl FnOnce(StoredPayload<'_>) -> Result<T, DecodeError>,
) -> Result<Arc<T>, StoreError> {
    let name = RowName::new("states", &hash);
    let (Some(schema_version), Some(encoding), Some(bytes)) = columns else {
        return Err(name.corrupt("hash", "no state of this hash is stored"));
    };
    let stored = StoredPayload {
        schema_version,
        encoding,
        bytes: &bytes,
    };
    let state = decode(stored).map_err(|error| name.undecodable("payload", error))?;
    Ok(Arc::new(state))
}

/// A bundle that lacks its history.
#[derive(Debug)]
pub(crate) struct BundleParts {
    pub(crate) head: SessionHead,
    environment: Arc<EnvironmentState>,
    context: Arc<StoredContext>,
}

impl BundleParts {
    /// Completes the bundle.
    pub(crate) fn with_history(self, history: History) -> Bundle {
        Bundle {
            head: self.head,
            environment: self.environment,
            context: self.context,
            history,
        }
    }
}

row! {
    /// The position of a session's newest messages, and the number of messages in its history.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct PositionRow {
        pub(crate) branch_id: Uuid,
        pub(crate) position: i64,
        pub(crate) message_count: i64,
    }
}

row! {
    /// A stored state as verification reads it.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct StateRow<'r> {
        pub(crate) hash: &'r [u8],
        pub(crate) kind: &'r str,
        pub(crate) tree: Option<&'r [u8]>,
        ;
        payload: PayloadRow<&'r [u8]>,
    }
}

impl StateRow<'_> {
    /// Returns the state as it is stored.
    pub(crate) fn stored(&self) -> StoredPayload<'_> {
        self.payload.stored()
    }
}
