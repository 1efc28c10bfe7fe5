//! The root hash of a session: it covers the session's parts, its parent's root hash and, if
//! present, `subagent_of` and the agent instance.

use super::bundle::SessionHead;
use super::hash::Hash;
use crate::json::canonical_bytes;

/// Begins an agent instance. With it, no two combinations of the last parts are the same bytes.
const AGENT_INSTANCE_MARKER: &[u8] = b"agent instance";

impl SessionHead {
    /// Computes the root hash of the session. It includes the parent's root hash, so it covers all
    /// ancestors.
    pub fn compute_root_hash(&self, parent: Option<Hash>) -> Result<Hash, serde_json::Error> {
        let mut hasher = blake3::Hasher::new_derive_key("agent-runtime root v1");
        hasher.update(self.session_id.as_uuid().as_bytes());
        for part in [
            parent,
            Some(self.environment_hash),
            Some(self.context_hash),
            Some(self.segment_hash),
            self.agent_version,
        ] {
            // A missing part and a part of zeros must differ, so each part begins with a marker.
            match part {
                Some(hash) => hasher.update(&[1]).update(hash.as_bytes()),
                None => hasher.update(&[0]),
            };
        }
        for bytes in [self.agent.as_bytes(), &canonical_bytes(&self.metadata)?] {
            hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        }
        hasher.update(&self.execution_count.to_le_bytes());
        hasher.update(&self.message_count.to_le_bytes());
        hasher.update(&self.created_at.timestamp_micros().to_le_bytes());
        // The parts from here on are omitted without a value, so that older sessions have the same
        // hashes.
        if let Some(session_id) = self.subagent_of {
            hasher.update(session_id.as_uuid().as_bytes());
        }
        if let Some(agent) = self.agent_instance {
            hasher.update(AGENT_INSTANCE_MARKER);
            hasher.update(agent.agent_id.as_uuid().as_bytes());
            hasher.update(&agent.created_at.timestamp_micros().to_le_bytes());
        }
        Ok(Hash::from(*hasher.finalize().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use chrono::DateTime;

    use super::*;
    use crate::clock::Timestamp;
    use crate::ids::{AgentId, BranchId, SessionId};
    use crate::json::Object;
    use crate::session::{AgentInstance, BranchPosition, hash_segment};

    #[test]
    fn an_older_session_has_the_root_hash_that_it_always_had() {
        let part = hash_segment(b"part");
        let id = uuid::Uuid::from_u128(1);
        let head = SessionHead {
            session_id: SessionId::from_uuid(id),
            parent_session_id: None,
            run_id: None,
            subagent_of: None,
            agent: "demo".to_owned(),
            agent_version: None,
            agent_instance: None,
            depth: 1,
            execution_count: 2,
            message_count: 3,
            history_start: 0,
            root_hash: part,
            environment_hash: part,
            context_hash: part,
            segment_hash: part,
            metadata: Object::new(),
            created_at: Timestamp::UNIX_EPOCH,
            position: BranchPosition {
                branch_id: BranchId::from_uuid(id),
                position: 0,
            },
        };
        let hash = head.compute_root_hash(Some(part)).unwrap();
        assert_eq!(
            hash.to_string(),
            "549630e74da30db533859e003004ad9d0187e059a8fe2599b4ec1a2d6a20da54"
        );
        let id = uuid::Uuid::from_u128;
        let hash_with = |subagent_of: Option<u128>, agent: Option<(u128, i64)>| {
            let head = SessionHead {
                subagent_of: subagent_of.map(|by| SessionId::from_uuid(id(by))),
                agent_instance: agent.map(|(agent, seconds)| AgentInstance {
                    agent_id: AgentId::from_uuid(id(agent)),
                    created_at: DateTime::from_timestamp(seconds, 0).unwrap(),
                }),
                ..head.clone()
            };
            head.compute_root_hash(Some(part)).unwrap()
        };
        let parts = [None, Some(0), Some(4)];
        let agents = [None, Some((0, 0)), Some((4, 0)), Some((0, 4))];
        let hashes: HashSet<Hash> = parts
            .into_iter()
            .flat_map(|by| agents.map(|agent| hash_with(by, agent)))
            .collect();
        assert!(hashes.contains(&hash));
        assert_eq!(hashes.len(), parts.len() * agents.len());
    }
}
