//! The messages on the channels: which runs have changed, the changes of tenants, and control
//! messages to runs.
//!
//! A process also receives its own messages, and recognizes them by their origin. Messages can be
//! lost, so their readers also poll. A reader of a tenant's changes gets an error instead.

use redis::Cmd;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::keys::{CHANGES_CHANNEL, CONTROL_CHANNEL, FEED_CHANNEL};
use crate::{AddressedMessage, ControlMessage, TenantChange};
use values::ids::{IdSource as _, RunId, UuidV7Source};
use values::tenant::TenantId;

/// The length of an id in a message.
const ID_BYTES: usize = 16;

/// The id of a process on the channels, valid for its lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin(Uuid);

/// A message of another process.
#[derive(Debug, PartialEq)]
pub(super) enum Notification {
    /// The runs that have changed.
    Changes(Vec<RunId>),
    /// The changes of tenants.
    Feed(FeedBatch),
    /// A control message to a run.
    Control(AddressedMessage),
}

/// Changes of tenants, in their order.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FeedBatch {
    pub(super) changes: Vec<(TenantId, TenantChange)>,
    /// Whether the process has lost changes before these.
    pub(super) has_gap: bool,
}

#[derive(Serialize, Deserialize)]
struct Envelope {
    origin: Uuid,
    tenant: TenantId,
    run_id: RunId,
    message: ControlMessage,
}

impl FeedBatch {
    /// Returns whether there is nothing to publish.
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty() && !self.has_gap
    }

    /// Makes a batch in place of one that is lost.
    fn lost() -> Self {
        Self {
            changes: Vec::new(),
            has_gap: true,
        }
    }
}

impl Origin {
    pub(super) fn new() -> Self {
        Self(UuidV7Source.next_uuid())
    }

    /// Returns the command that publishes which runs have changed. The reply is the number of
    /// subscribers.
    pub(super) fn publish_changes(self, runs: &[RunId]) -> Cmd {
        let ids = runs.iter().map(|run_id| run_id.as_uuid());
        let ids = std::iter::once(self.0).chain(ids);
        let message: Vec<u8> = ids.flat_map(Uuid::into_bytes).collect();
        Cmd::publish(CHANGES_CHANNEL, message)
    }

    /// Returns the command that publishes changes of tenants; `None` if there are none.
    pub(super) fn publish_feed(self, batch: &FeedBatch) -> Option<Cmd> {
        if batch.is_empty() {
            return None;
        }
        // Names and ids always have a JSON form.
        let message = serde_json::to_vec(&(self.0, batch)).ok()?;
        Some(Cmd::publish(FEED_CHANNEL, message))
    }

    /// Returns the command that publishes a control message.
    pub(super) fn publish_control(self, message: AddressedMessage) -> Result<Cmd, serde_json::Error> {
        let (tenant, run_id, message) = message;
        let envelope = Envelope {
            origin: self.0,
            tenant,
            run_id,
            message,
        };
        Ok(Cmd::publish(CONTROL_CHANNEL, serde_json::to_vec(&envelope)?))
    }

    /// Reads a message. Returns `None` for a message of this process, or one that this version
    /// can't read. Unreadable changes of tenants are a gap: a process can read its own.
    pub(super) fn read(self, channel: &str, message: &[u8]) -> Option<Notification> {
        if channel == CONTROL_CHANNEL {
            let read: Envelope = serde_json::from_slice(message).ok()?;
            let message = (read.tenant, read.run_id, read.message);
            return (read.origin != self.0).then_some(Notification::Control(message));
        }
        if channel == FEED_CHANNEL {
            let read: Result<(Uuid, FeedBatch), _> = serde_json::from_slice(message);
            let batch = read.map_or_else(
                |_| Some(FeedBatch::lost()),
                |(origin, batch)| (origin != self.0).then_some(batch),
            );
            return batch.map(Notification::Feed);
        }
        let mut ids = message
            .chunks_exact(ID_BYTES)
            .filter_map(|id| Uuid::from_slice(id).ok());
        let origin = ids.next()?;
        (origin != self.0).then(|| Notification::Changes(ids.map(RunId::from_uuid).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(command: &Cmd) -> (String, Vec<u8>) {
        let words: Vec<Vec<u8>> = command
            .args_iter()
            .filter_map(|arg| match arg {
                redis::Arg::Simple(word) => Some(word.to_vec()),
                _ => None,
            })
            .collect();
        (String::from_utf8(words[1].clone()).unwrap(), words[2].clone())
    }

    #[test]
    fn others_read_what_a_process_publishes_and_it_skips_its_own_messages() {
        let (here, there) = (Origin::new(), Origin::new());
        let run_id = RunId::generate(&UuidV7Source);
        let control = ("acme".parse().unwrap(), run_id, ControlMessage::Refresh);
        let batch = |has_gap| FeedBatch {
            changes: vec![(
                "acme".parse().unwrap(),
                TenantChange::ThreadRemoved {
                    thread: "t".parse().unwrap(),
                },
            )],
            has_gap,
        };
        assert!(here.publish_feed(&FeedBatch::default()).is_none());
        for (command, notification) in [
            (here.publish_changes(&[run_id]), Notification::Changes(vec![run_id])),
            (
                here.publish_feed(&batch(true)).unwrap(),
                Notification::Feed(batch(true)),
            ),
            (
                here.publish_control(control.clone()).unwrap(),
                Notification::Control(control),
            ),
        ] {
            let (channel, message) = message(&command);
            assert_eq!(there.read(&channel, &message), Some(notification));
            assert_eq!(here.read(&channel, &message), None);
        }
    }

    #[test]
    fn a_control_message_has_one_form_for_all_replicas() {
        let run_id = RunId::generate(&UuidV7Source);
        let control = ("acme".parse().unwrap(), run_id, ControlMessage::Refresh);
        let (_, message) = message(&Origin::new().publish_control(control).unwrap());
        let message: serde_json::Value = serde_json::from_slice(&message).unwrap();
        assert_eq!(message["message"], serde_json::json!({"kind": "refresh"}));
    }

    #[test]
    fn a_malformed_message_is_skipped_and_leaves_a_gap_in_the_feed() {
        let here = Origin::new();
        for (channel, message) in [
            (CONTROL_CHANNEL, &b"{}"[..]),
            (CONTROL_CHANNEL, b"\xff"),
            (CHANGES_CHANNEL, b""),
            (CHANGES_CHANNEL, b"short"),
        ] {
            assert_eq!(here.read(channel, message), None);
        }
        // Another version may have changes that this one does not know.
        let unknown = serde_json::json!([here.0, {"changes": [["acme", {"kind": "unknown"}]], "has_gap": false}]);
        for message in [&b""[..], b"[]", b"\xff", unknown.to_string().as_bytes()] {
            let lost = Notification::Feed(FeedBatch::lost());
            assert_eq!(here.read(FEED_CHANNEL, message), Some(lost));
        }
    }
}
