//! Sessions as JSON that other stores can take, with the same ids and hashes. Contains no SQL.
//!
//! The JSON contains the parts of a session exactly as they are stored, so their hashes can be
//! checked anywhere. The position in the stored history is not part of it: each store assigns its
//! own.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::codec::{
    CONTEXT_VERSION, ENVIRONMENT_VERSION, EncodeError, EncodedSegment, Payload, SEGMENT_VERSION, canonical_context,
    decode_context, decode_environment, encode_messages,
};
use super::error::StoreError;
use super::new_commit::root_hash_of;
use values::clock::Timestamp;
use values::ids::{BranchId, RunId, SessionId};
use values::json::{Object, canonical_bytes};
use values::message::Message;
use values::session::{
    AgentInstance, Bundle, BundleDraft, ContextState, Hash, History, RunOutcome, hash_context, hash_environment,
    hash_segment,
};

const OPERATION: &str = "read a portable session";

/// A session with its parts as they are stored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortableSession {
    /// Names the session.
    pub session_id: SessionId,
    /// The session that it continues.
    pub parent_session_id: Option<SessionId>,
    /// The hash that covers everything here except `run_id` and `run_status`, and all ancestors.
    pub root_hash: Hash,
    merged_session_id: Option<SessionId>,
    environment_session_id: Option<SessionId>,
    run_id: Option<RunId>,
    #[serde(default, deserialize_with = "known_outcome")]
    run_status: Option<RunOutcome>,
    subagent_of: Option<SessionId>,
    agent: String,
    agent_version: Option<Hash>,
    agent_instance: AgentInstance,
    execution_count: u64,
    message_count: u64,
    metadata: Object,
    created_at: Timestamp,
    environment: Box<RawValue>,
    context: Box<RawValue>,
    /// The messages that the session added.
    messages: Box<RawValue>,
}

/// Reads how a run ended. A name of a later version is read as none, as in a row.
fn known_outcome<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RunOutcome>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    Ok(name.as_deref().and_then(RunOutcome::find))
}

/// Why a session can't be carried to another store.
#[derive(Debug, thiserror::Error)]
pub enum PortableError {
    /// A part can't be encoded.
    #[error("the session {session_id} can't be written as JSON")]
    Encode {
        /// The session.
        session_id: SessionId,
        /// The cause.
        #[source]
        source: EncodeError,
    },
    /// A part does not have the hash that the session states.
    #[error("the session {session_id} differs from its hash, or another version of agent-runtime wrote it")]
    Differs {
        /// The session.
        session_id: SessionId,
    },
    /// A part can't be read.
    #[error("the session {session_id} can't be read")]
    Unreadable {
        /// The session.
        session_id: SessionId,
        /// The cause.
        #[source]
        source: StoreError,
    },
    /// The session continues another one than the given parent.
    #[error("the session {session_id} continues another session")]
    OtherParent {
        /// The session.
        session_id: SessionId,
    },
}

impl PortableSession {
    /// Makes the JSON of a session from its states and the messages that it added. Checks the
    /// hashes of these parts.
    pub fn of(states: &Bundle, messages: &[Arc<Message>]) -> Result<Self, PortableError> {
        let head = &states.head;
        let session_id = head.session_id;
        let part = |encoded: Result<Vec<u8>, EncodeError>, hash: fn(&[u8]) -> Hash, expected: Hash| {
            let bytes = encoded.map_err(|source| PortableError::Encode { session_id, source })?;
            let text = String::from_utf8(bytes)
                .ok()
                .filter(|text| hash(text.as_bytes()) == expected);
            let raw = text.and_then(|text| RawValue::from_string(text).ok());
            raw.ok_or(PortableError::Differs { session_id })
        };
        let environment = canonical_bytes(&states.environment).map_err(EncodeError::Json);
        let context = canonical_context(&states.context);
        Ok(Self {
            session_id,
            parent_session_id: head.parent_session_id,
            root_hash: head.root_hash,
            merged_session_id: head.merged_session_id,
            environment_session_id: head.environment_session_id,
            run_id: head.run_id,
            run_status: head.run_status,
            subagent_of: head.subagent_of,
            agent: head.agent.clone(),
            agent_version: head.agent_version,
            agent_instance: head.agent_instance,
            execution_count: head.execution_count,
            message_count: head.message_count,
            metadata: head.metadata.clone(),
            created_at: head.created_at,
            environment: part(environment, hash_environment, head.environment_hash)?,
            context: part(context, hash_context, head.context_hash)?,
            messages: part(encode_messages(messages), hash_segment, head.segment_hash)?,
        })
    }

    /// Makes the draft of an equal session. `parent` is the session that it continues. Checks that
    /// the draft has the same root hash, which covers all parts and all ancestors.
    pub fn into_draft(
        self,
        parent: Option<Arc<Bundle>>,
        new_branch_id: BranchId,
    ) -> Result<BundleDraft, PortableError> {
        let (session_id, root_hash) = (self.session_id, self.root_hash);
        if parent.as_ref().map(|parent| parent.head.session_id) != self.parent_session_id {
            return Err(PortableError::OtherParent { session_id });
        }
        let draft = self.decoded(parent, new_branch_id);
        let draft = draft.map_err(|source| PortableError::Unreadable { session_id, source })?;
        let actual = root_hash_of(&draft);
        let actual = actual.map_err(|source| PortableError::Unreadable { session_id, source })?;
        if actual == root_hash {
            Ok(draft)
        } else {
            Err(PortableError::Differs { session_id })
        }
    }

    fn decoded(self, parent: Option<Arc<Bundle>>, new_branch_id: BranchId) -> Result<BundleDraft, StoreError> {
        let plain = |version, raw: &RawValue| Payload::plain(version, raw.get().as_bytes().to_vec());
        let environment = plain(ENVIRONMENT_VERSION, &self.environment);
        let context = plain(CONTEXT_VERSION, &self.context);
        let context = decode_context(context.as_stored(), self.agent_instance);
        let inherited = parent.as_ref().map_or(0, |parent| parent.head.message_count);
        let count = i64::try_from(self.message_count.saturating_sub(inherited));
        let count = count.map_err(StoreError::failed(OPERATION))?;
        let messages = EncodedSegment::from_stored(count, plain(SEGMENT_VERSION, &self.messages)).decode();
        let messages = messages.map_err(StoreError::failed(OPERATION))?;
        let history = parent
            .as_ref()
            .map_or_else(History::default, |parent| parent.history.clone());
        Ok(BundleDraft {
            session_id: self.session_id,
            parent,
            merged_session_id: self.merged_session_id,
            environment_session_id: self.environment_session_id,
            run_id: self.run_id,
            run_status: self.run_status,
            subagent_of: self.subagent_of,
            agent: self.agent,
            agent_version: self.agent_version,
            environment: Arc::new(decode_environment(environment.as_stored()).map_err(StoreError::failed(OPERATION))?),
            context: ContextState {
                stored: context.map_err(StoreError::failed(OPERATION))?,
                metadata: self.metadata,
                execution_count: self.execution_count,
                updated_at: self.created_at,
            },
            history: history.with_messages(messages),
            new_branch_id,
        })
    }
}
