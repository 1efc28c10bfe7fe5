//! The messages on the channels: which runs have news, and signals to runs.
//!
//! A process also receives its own messages, and recognises them by their origin. Messages can be
//! lost, so their readers also poll.

use redis::Cmd;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::keys::{CHANGES_CHANNEL, SIGNALS_CHANNEL, publish};
use crate::board::{AddressedSignal, RunSignal};
use crate::ids::{IdSource as _, RunId, UuidV7Source};
use crate::tenant::TenantId;

/// The length of an id in a message.
const ID_BYTES: usize = 16;

/// Names a process on the channels, for as long as it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin(Uuid);

/// What another process tells.
#[derive(Debug, PartialEq)]
pub(super) enum News {
    /// There is something new of these runs.
    Changes(Vec<RunId>),
    /// A signal.
    Signal(AddressedSignal),
}

#[derive(Serialize, Deserialize)]
struct SignalMessage {
    origin: Uuid,
    tenant: TenantId,
    run_id: RunId,
    signal: RunSignal,
}

impl Origin {
    pub(super) fn new() -> Self {
        Self(UuidV7Source.next_uuid())
    }

    /// Returns the command that tells of which runs there is news.
    pub(super) fn tell_changes(self, runs: &[RunId]) -> Cmd {
        let ids = runs.iter().map(|run_id| run_id.as_uuid());
        let ids = std::iter::once(self.0).chain(ids);
        let message: Vec<u8> = ids.flat_map(Uuid::into_bytes).collect();
        publish(CHANGES_CHANNEL, &message)
    }

    /// Returns the command that tells a signal.
    pub(super) fn tell_signal(self, signal: AddressedSignal) -> Result<Cmd, serde_json::Error> {
        let (tenant, run_id, signal) = signal;
        let message = SignalMessage {
            origin: self.0,
            tenant,
            run_id,
            signal,
        };
        Ok(publish(SIGNALS_CHANNEL, &serde_json::to_vec(&message)?))
    }

    /// Reads a message; none when it is this process's own, or one that this version can't read.
    pub(super) fn hear(self, channel: &str, message: &[u8]) -> Option<News> {
        if channel == SIGNALS_CHANNEL {
            let heard: SignalMessage = serde_json::from_slice(message).ok()?;
            let signal = (heard.tenant, heard.run_id, heard.signal);
            return (heard.origin != self.0).then_some(News::Signal(signal));
        }
        let mut ids = message
            .chunks_exact(ID_BYTES)
            .filter_map(|id| Uuid::from_slice(id).ok());
        let origin = ids.next()?;
        (origin != self.0).then(|| News::Changes(ids.map(RunId::from_uuid).collect()))
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
    fn others_hear_what_a_process_tells_and_it_does_not_hear_itself() {
        let (here, there) = (Origin::new(), Origin::new());
        let run_id = RunId::generate(&UuidV7Source);
        let signal = ("acme".parse().unwrap(), run_id, RunSignal::Look);
        for (command, news) in [
            (here.tell_changes(&[run_id]), News::Changes(vec![run_id])),
            (here.tell_signal(signal.clone()).unwrap(), News::Signal(signal)),
        ] {
            let (channel, message) = message(&command);
            assert_eq!(there.hear(&channel, &message), Some(news));
            assert_eq!(here.hear(&channel, &message), None);
        }
    }

    #[test]
    fn what_is_no_message_is_not_heard() {
        let here = Origin::new();
        for (channel, message) in [
            (SIGNALS_CHANNEL, &b"{}"[..]),
            (SIGNALS_CHANNEL, b"\xff"),
            (CHANGES_CHANNEL, b""),
            (CHANGES_CHANNEL, b"short"),
        ] {
            assert_eq!(here.hear(channel, message), None);
        }
    }
}
