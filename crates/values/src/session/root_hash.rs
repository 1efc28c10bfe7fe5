//! The root hash of a session: it covers the session's parts and its parent's root hash.

use super::bundle::SessionHead;
use super::hash::Hash;
use crate::ids::SessionId;
use crate::json::canonical_bytes;

impl SessionHead {
    /// Computes the root hash of the session. It includes the parent's root hash, so it covers all
    /// ancestors. It does not cover the run with its status, the thread, which is a name of this
    /// store, and what follows from the rest: the root of the tree, the title, the preview, and
    /// whether files have changed.
    pub fn compute_root_hash(&self, parent: Option<Hash>) -> Result<Hash, serde_json::Error> {
        let mut hasher = blake3::Hasher::new_derive_key("agent-runtime root v1");
        hasher.update(self.session_id.as_uuid().as_bytes());
        let subagent_of = self.subagent_of.map(SessionId::as_uuid);
        let merged = self.merged_session_id.map(SessionId::as_uuid);
        let environment = self.environment_session_id.map(SessionId::as_uuid);
        for part in [
            parent.as_ref().map(|hash| &hash.as_bytes()[..]),
            Some(self.environment_hash.as_bytes()),
            Some(self.context_hash.as_bytes()),
            Some(self.segment_hash.as_bytes()),
            self.agent_version.as_ref().map(|hash| &hash.as_bytes()[..]),
            subagent_of.as_ref().map(|id| &id.as_bytes()[..]),
            merged.as_ref().map(|id| &id.as_bytes()[..]),
            environment.as_ref().map(|id| &id.as_bytes()[..]),
        ] {
            // A missing part and a part of zeros must differ, so each part begins with a marker.
            match part {
                Some(bytes) => hasher.update(&[1]).update(bytes),
                None => hasher.update(&[0]),
            };
        }
        for bytes in [self.agent.as_bytes(), &canonical_bytes(&self.metadata)?] {
            hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        }
        hasher.update(self.agent_instance.agent_id.as_uuid().as_bytes());
        hasher.update(&self.agent_instance.created_at.timestamp_micros().to_le_bytes());
        hasher.update(&self.execution_count.to_le_bytes());
        hasher.update(&self.message_count.to_le_bytes());
        hasher.update(&self.created_at.timestamp_micros().to_le_bytes());
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
    fn a_root_hash_never_changes_and_covers_the_origin_of_a_session() {
        let part = hash_segment(b"part");
        let id = uuid::Uuid::from_u128(1);
        let head = SessionHead {
            session_id: SessionId::from_uuid(id),
            parent_session_id: None,
            root_session_id: SessionId::from_uuid(id),
            merged_session_id: None,
            environment_session_id: None,
            run_id: None,
            run_status: None,
            subagent_of: None,
            thread: None,
            agent: "demo".to_owned(),
            agent_version: None,
            agent_instance: AgentInstance {
                agent_id: AgentId::from_uuid(id),
                created_at: Timestamp::UNIX_EPOCH,
            },
            depth: 1,
            execution_count: 2,
            message_count: 3,
            history_start: 0,
            root_hash: part,
            environment_hash: part,
            context_hash: part,
            segment_hash: part,
            metadata: Object::new(),
            title: None,
            preview: None,
            has_files_changed: false,
            created_at: Timestamp::UNIX_EPOCH,
            position: BranchPosition {
                branch_id: BranchId::from_uuid(id),
                position: 0,
            },
        };
        let hash = head.compute_root_hash(Some(part)).unwrap();
        assert_eq!(
            hash.to_string(),
            "c21132c0432a0920282ae152ba168eb53b1cd350270c286f2b038a03beae8607"
        );
        let id = uuid::Uuid::from_u128;
        let hash_with = |others: [Option<u128>; 3], agent: (u128, i64)| {
            let [subagent_of, merged_session_id, environment_session_id] =
                others.map(|other| other.map(|other| SessionId::from_uuid(id(other))));
            let head = SessionHead {
                subagent_of,
                merged_session_id,
                environment_session_id,
                agent_instance: AgentInstance {
                    agent_id: AgentId::from_uuid(id(agent.0)),
                    created_at: DateTime::from_timestamp(agent.1, 0).unwrap(),
                },
                ..head.clone()
            };
            head.compute_root_hash(Some(part)).unwrap()
        };
        let mut others = vec![[None; 3]];
        for part in 0..3 {
            for value in [0, 4] {
                let mut other = [None; 3];
                other[part] = Some(value);
                others.push(other);
            }
        }
        let agents = [(1, 0), (4, 0), (1, 4)];
        let hashes: HashSet<Hash> = others
            .iter()
            .flat_map(|others| agents.map(|agent| hash_with(*others, agent)))
            .collect();
        assert!(hashes.contains(&hash));
        assert_eq!(hashes.len(), others.len() * agents.len());
    }
}
