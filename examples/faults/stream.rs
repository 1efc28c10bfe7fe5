//! Reading the events of a run to its terminal one, however often the way breaks, and checking that
//! none is missing and none comes twice.

use std::time::Duration;

use anyhow::{Result, bail};
use futures_util::StreamExt as _;
use reqwest::Response;
use serde_json::Value;
use sse_stream::{Sse, SseStream};
use uuid::Uuid;

use crate::client::Client;
use crate::facts::{ReadEvent, terminal_status};
use crate::random::Random;

/// The service sends something every second, so a longer silence is a broken connection.
const SILENCE: Duration = Duration::from_secs(4);

/// The events that a reader has read so far.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// The events.
    pub(crate) events: Vec<ReadEvent>,
    /// The results of calls that were emitted, also those that were replaced.
    pub(crate) emitted: Vec<String>,
    /// How often the reader came back.
    pub(crate) reconnects: u64,
    /// How often it was sent back: what it had read from a number on was nothing that another
    /// worker could find.
    pub(crate) sent_back: u64,
    /// The faults.
    pub(crate) faults: Vec<String>,
}

/// Why a connection is left.
enum Left {
    /// The run has ended.
    Ended,
    /// The way broke, or the reader left; there is more.
    Broken,
}

impl Reading {
    /// Reads to the terminal event. A reader that is restless leaves now and then and comes back
    /// elsewhere.
    pub(crate) async fn read_to_the_end(
        &mut self,
        client: &Client,
        random: &mut Random,
        run_id: Uuid,
        is_restless: bool,
    ) -> Result<()> {
        let path = format!("/v1/runs/{run_id}/events");
        loop {
            if client.is_over() {
                bail!(
                    "the stream has no terminal event; {} events were read",
                    self.events.len()
                );
            }
            if let Some(response) = client.events(random, &path, self.last()).await? {
                let patience = if is_restless { 1 + random.index(40) } else { usize::MAX };
                if let Left::Ended = self.read(response, run_id, patience).await {
                    return Ok(());
                }
            }
            self.reconnects += 1;
            client.pause(random).await;
        }
    }

    /// Returns the number of the last event.
    fn last(&self) -> u64 {
        self.events.last().map_or(0, |event| event.sequence)
    }

    async fn read(&mut self, response: Response, run_id: Uuid, patience: usize) -> Left {
        let mut events = SseStream::from_bytes_stream(response.bytes_stream());
        let mut read = 0;
        while read < patience {
            let Ok(Some(Ok(event))) = tokio::time::timeout(SILENCE, events.next()).await else {
                return Left::Broken;
            };
            // A comment, or the word that the reader was dropped: neither is an event of the run.
            if event.id.is_none() {
                continue;
            }
            read += 1;
            if self.take(&event, run_id) {
                return Left::Ended;
            }
        }
        Left::Broken
    }

    /// An event whose number was read before replaces that one and all after it. Only
    /// where another worker begins, and at the end, may that be.
    fn go_back(&mut self, sequence: u64, name: &str) {
        let may_be =
            ["run.started", "run.resumed", "session.committed"].contains(&name) || terminal_status(name).is_some();
        if may_be && (1..=self.last()).contains(&sequence) {
            self.events.retain(|event| event.sequence < sequence);
            self.sent_back += 1;
        }
    }

    /// Takes an event and returns whether it is the terminal one.
    fn take(&mut self, event: &Sse, run_id: Uuid) -> bool {
        let text = event.data.as_deref().unwrap_or_default();
        let data: Value = serde_json::from_str(text).unwrap_or_default();
        let name = event.event.clone().unwrap_or_default();
        let sequence = event.id.as_deref().and_then(|id| id.parse().ok()).unwrap_or_default();
        let is_whole = data["sequence"] == sequence && data["type"] == *name && data["run_id"] == run_id.to_string();
        self.go_back(sequence, &name);
        let wanted = self.last() + 1;
        if sequence != wanted {
            self.faults
                .push(format!("event {sequence} ({name}) was read where {wanted} was to come"));
        }
        if !is_whole {
            self.faults
                .push(format!("event {sequence} ({name}) contradicts itself: {text}"));
        }
        if name == "tool_call.completed" && data["data"]["is_error"] == false {
            let texts = data["data"]["content"].as_array().into_iter().flatten();
            let texts = texts.filter_map(|part| part["text"].as_str());
            self.emitted.push(texts.collect());
        }
        let is_terminal = terminal_status(&name).is_some();
        let read = ReadEvent {
            sequence,
            name,
            digest: blake3::hash(text.as_bytes()),
            text: is_terminal.then(|| text.to_owned()),
        };
        self.events.push(read);
        is_terminal
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(run_id: Uuid, id: u64, sequence: u64, name: &str) -> Sse {
        let data = json!({"sequence": sequence, "type": name, "run_id": run_id});
        Sse::default().id(id.to_string()).event(name).data(data.to_string())
    }

    /// Reads events of these numbers and returns how many faults there were.
    fn faults_of(ids: &[u64]) -> usize {
        let run_id = Uuid::now_v7();
        let mut reading = Reading::default();
        for id in ids {
            assert!(!reading.take(&event(run_id, *id, *id, "step.started"), run_id));
        }
        assert_eq!(reading.events.len(), ids.len());
        reading.faults.len()
    }

    #[test]
    fn a_gap_and_a_repetition_are_faults() {
        for (ids, faults) in [
            (&[1, 2, 3][..], 0),
            (&[2], 1),
            (&[1, 3], 1),
            (&[1, 1], 1),
            (&[1, 2, 1], 1),
        ] {
            assert_eq!(faults_of(ids), faults, "{ids:?}");
        }
    }

    #[test]
    fn a_reader_is_sent_back_to_a_resumption_and_to_the_end_only() {
        let run_id = Uuid::now_v7();
        let mut reading = Reading::default();
        for (id, name) in [
            (1, "run.started"),
            (2, "step.started"),
            (3, "message.delta"),
            (2, "run.resumed"),
        ] {
            reading.take(&event(run_id, id, id, name), run_id);
        }
        assert_eq!(
            (reading.events.len(), reading.sent_back, reading.faults.len()),
            (2, 1, 0)
        );
        reading.take(&event(run_id, 1, 1, "step.started"), run_id);
        assert_eq!((reading.sent_back, reading.faults.len()), (1, 1));
    }

    #[test]
    fn an_event_of_another_run_or_number_contradicts_itself() {
        let run_id = Uuid::now_v7();
        for event in [
            event(Uuid::now_v7(), 1, 1, "run.started"),
            event(run_id, 1, 2, "run.started"),
            event(run_id, 1, 1, "run.started").event("step.started"),
        ] {
            let mut reading = Reading::default();
            reading.take(&event, run_id);
            assert_eq!(reading.faults.len(), 1, "{event:?}");
        }
    }

    #[test]
    fn a_stream_ends_with_its_terminal_event() {
        let run_id = Uuid::now_v7();
        for (name, is_terminal) in [
            ("run.stopped", true),
            ("run.cancelled", true),
            ("session.committed", false),
        ] {
            assert_eq!(Reading::default().take(&event(run_id, 1, 1, name), run_id), is_terminal);
        }
    }
}
