//! Streams the events of a run.

use std::mem;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use serde_json::json;

use crate::http::auth::Call;
use crate::http::chat_history::read_or_nothing;
use crate::http::event_stream::{FrameReader, NextFrames, event_stream};
use crate::http::face_stream::{FrameWriter, Reader, write_frame};
use crate::http::faces::chat::ChatEcho;
use crate::http::faces::langgraph::{Message, Modes, OpenStep, StreamWriter, Values, error_of, messages_of};
use crate::http::in_flight::respond_with;
use crate::http::problem::Problem;
use crate::run::CallerGuard;
use crate::run::read::{Followed, Follower, run_lookup, run_messages};
use agent::record::{RunEvent, RunEventPayload, RunStatus, ThreadName};
use tasks::fair_share::Share;
use tasks::off_thread::by_size;
use values::ids::{RunId, SessionId};
use values::json::Value;
use values::limits::TenantShare;

/// The header with the last event that a reader has.
const LAST_EVENT: &str = "last-event-id";

/// Writes the events of a run, as far as the reader lacks them.
struct NumberedWriter {
    writer: StreamWriter,
    /// The room of the conversation before the run.
    _share: Share,
    /// The last event that the reader has: the number of an event of the run, and that of the event
    /// made of it.
    after: Option<(u64, u64)>,
}

impl FrameWriter for NumberedWriter {
    const LAST: &'static [u8] = b"";

    fn write(&mut self, event: &RunEvent, frames: &mut Vec<u8>) {
        self.writer.read(event);
        for (index, made) in (0_u64..).zip(self.writer.take()) {
            let is_new = self.after.is_none_or(|after| (event.sequence, index) > after);
            if let Some(name) = made.name().filter(|_| is_new) {
                frames.extend_from_slice(format!("id: {}-{index}\n", event.sequence).as_bytes());
                write_frame(frames, event.run_id, Some(name), &made);
            }
        }
    }

    /// A client that sees no end asks for the rest.
    fn write_dropped(&mut self, _: RunId, _: &str, _: &mut Vec<u8>) {}
}

/// Reads the last event that a client has. `-1` and names that no event has mean none.
pub(super) fn last_event(headers: &HeaderMap) -> Option<(u64, u64)> {
    let id = headers.get(LAST_EVENT)?.to_str().ok()?;
    let (sequence, index) = id.split_once('-')?;
    Some((sequence.parse().ok()?, index.parse().ok()?))
}

/// A reader of the events of a run.
pub(super) struct RunReader {
    pub(super) events: Follower,
    /// The guard of the caller, if the stream is the response to the request for the run.
    pub(super) caller: Option<CallerGuard>,
    /// Counts the reader, unless its request has started the run.
    pub(super) counted: Option<TenantShare>,
    pub(super) modes: Modes,
    /// The last event that the reader has.
    pub(super) after: Option<(u64, u64)>,
}

/// Follows a run. The response begins at once, also if the run waits for its turn.
pub(super) fn respond(call: Call, thread: Option<&ThreadName>, reader: RunReader) -> Result<Response, Problem> {
    let run_id = reader.events.run_id();
    let reader = Following {
        call: call.clone(),
        first: None,
        stage: Stage::Waiting(Box::new(reader)),
    };
    let mut response = event_stream(call, reader);
    name_run(&mut response, thread, run_id)?;
    Ok(response)
}

/// Reads the events of a run, once it has begun.
struct Following {
    call: Call,
    /// The first event, which a cancelled call may have read.
    first: Option<Arc<RunEvent>>,
    stage: Stage,
}

enum Stage {
    Waiting(Box<RunReader>),
    Reading(Box<Reader<NumberedWriter>>),
    Over,
}

impl FrameReader for Following {
    async fn next(&mut self) -> Option<NextFrames> {
        if let Stage::Waiting(reader) = &mut self.stage {
            if self.first.is_none() {
                self.first = first_of(&mut reader.events).await;
            }
            let run_id = reader.events.run_id();
            let is_first = self.first.as_ref().is_some_and(|event| event.sequence == 1);
            if !is_first {
                let bytes = stored_frames(&self.call, run_id).await?;
                self.stage = Stage::Over;
                return Some(NextFrames { bytes, is_last: true });
            }
            // A client that sees no end asks again.
            let before = conversation_before(&self.call, run_id, self.first.as_deref())
                .await
                .ok()?;
            self.begin(before);
        }
        match &mut self.stage {
            Stage::Reading(reader) => reader.next().await,
            Stage::Waiting(_) | Stage::Over => None,
        }
    }

    async fn dropped(&mut self, reason: &'static str) -> Bytes {
        match &mut self.stage {
            Stage::Reading(reader) => return reader.dropped(reason).await,
            Stage::Waiting(reader) => {
                if let Some(caller) = &reader.caller {
                    caller.note_sent(&Followed::Dropped { reason });
                }
            }
            Stage::Over => (),
        }
        Bytes::new()
    }
}

impl Following {
    fn begin(&mut self, (share, conversation): (Share, Vec<Message>)) {
        let Stage::Waiting(reader) = mem::replace(&mut self.stage, Stage::Over) else {
            return;
        };
        let writer = NumberedWriter {
            writer: StreamWriter::new(reader.modes, conversation),
            _share: share,
            after: reader.after,
        };
        let (events, caller, counted) = (reader.events, reader.caller, reader.counted);
        let reading = Reader::new(self.call.clone(), self.first.take(), events, caller, counted, writer);
        self.stage = Stage::Reading(Box::new(reading));
    }
}

/// Names the run in the headers of a response, where clients look for it.
pub(super) fn name_run(response: &mut Response, thread: Option<&ThreadName>, run_id: RunId) -> Result<(), Problem> {
    let path = match thread {
        Some(thread) => format!("/threads/{thread}/runs/{run_id}"),
        None => format!("/runs/{run_id}"),
    };
    let headers = response.headers_mut();
    if thread.is_some() {
        let stream = HeaderValue::try_from(format!("{path}/stream")).map_err(Problem::internal)?;
        headers.insert(HeaderName::from_static("location"), stream);
    }
    let path = HeaderValue::try_from(path).map_err(Problem::internal)?;
    headers.insert(HeaderName::from_static("content-location"), path);
    Ok(())
}

async fn first_of(events: &mut Follower) -> Option<Arc<RunEvent>> {
    match events.next().await {
        Some(Followed::Event(event)) => Some(event),
        Some(Followed::Dropped { .. }) | None => None,
    }
}

/// Reads the messages before a run, its own input included, and the room that they take.
async fn conversation_before(
    call: &Call,
    run_id: RunId,
    first: Option<&RunEvent>,
) -> Result<(Share, Vec<Message>), Problem> {
    let run = run_lookup(&call.api.runs, &call.tenant, run_id).await?;
    let begun = match first.map(|event| &event.payload) {
        Some(RunEventPayload::Started(started)) => started.base_session_id,
        _ => run.as_ref().and_then(|run| run.summary.base_session_id),
    };
    let (share, mut messages) = messages_at(call, begun).await?;
    let echo = run.and_then(|run| run.echo);
    let echo = ChatEcho::of_stored(echo.as_deref());
    messages.extend(echo.messages.into_iter().map(Message::of_user));
    Ok((share, messages))
}

async fn messages_at(call: &Call, session_id: Option<SessionId>) -> Result<(Share, Vec<Message>), Problem> {
    let (share, bytes, passages) = read_or_nothing(call, session_id).await?;
    let messages = by_size(&call.tenant, bytes, move || messages_of(&passages)).await;
    Ok((share, messages))
}

/// The state at the end of a run, or its error, and the room that it takes.
pub(super) type End = (Share, Result<Values, Value>);

/// Follows a run to its end.
pub(super) async fn end_of(call: &Call, mut events: Follower, caller: Option<&CallerGuard>) -> Result<End, Problem> {
    let run_id = events.run_id();
    let first = first_of(&mut events).await;
    let Some(first) = first.filter(|event| event.sequence == 1) else {
        return stored_end(call, run_id).await;
    };
    let (share, conversation) = conversation_before(call, run_id, Some(&first)).await?;
    let mut writer = StreamWriter::new(Modes::default(), conversation);
    let mut next = Some(Followed::Event(first));
    while let Some(followed) = next {
        if let Some(caller) = caller {
            caller.note_sent(&followed);
        }
        let Followed::Event(event) = followed else { break };
        writer.read(&event);
        writer.take();
        if let Some(record) = event.payload.record() {
            return Ok((share, writer.into_end(record)));
        }
        next = events.next().await;
    }
    stored_end(call, run_id).await
}

/// Responds with the end of a run.
pub(super) async fn respond_end((share, end): End) -> Result<Response, Problem> {
    match end {
        Ok(values) => respond_with(share, values).await,
        Err(error) => respond_with(share, json!({"__error__": error})).await,
    }
}

/// Reads the end of a run whose events are no longer retained.
async fn stored_end(call: &Call, run_id: RunId) -> Result<End, Problem> {
    let gone = || Problem::internal("the run is gone before its end");
    let stored = run_messages(&call.api.runs, &call.tenant, run_id)
        .await?
        .ok_or_else(gone)?;
    let run = &stored.record.summary;
    if run.status == RunStatus::Failed {
        let (share, _) = messages_at(call, None).await?;
        return Ok((share, Err(error_of(&stored.record))));
    }
    let session_id = if run.status.has_session() {
        Some(run.session_id)
    } else {
        run.base_session_id
    };
    let (share, messages) = messages_at(call, session_id).await?;
    let calls = &stored.record.open_calls;
    let open = stored.steps.last().filter(|_| !calls.is_empty());
    let interrupts = open.map(|step| {
        let (id, calls) = (step.step_id, calls.clone());
        OpenStep { id, calls }.interrupts()
    });
    Ok((
        share,
        Ok(Values {
            messages,
            interrupts: interrupts.unwrap_or_default(),
        }),
    ))
}

/// Writes the end of a run whose events are no longer retained; `None` if it can't be read.
async fn stored_frames(call: &Call, run_id: RunId) -> Option<Bytes> {
    let (_share, end) = stored_end(call, run_id).await.ok()?;
    let mut frames = Vec::new();
    match end {
        Ok(values) => write_values(&mut frames, &values),
        Err(error) => write_frame(&mut frames, run_id, Some("error"), &error),
    }
    Some(frames.into())
}

/// Writes the last events of a run: its state and, as clients read nothing else of such an event,
/// its interrupts after it.
pub(super) fn write_values(frames: &mut Vec<u8>, values: &Values) {
    let plain = Values {
        messages: values.messages.clone(),
        interrupts: Vec::new(),
    };
    write_frame(frames, None, Some("values"), &plain);
    if values.has_interrupts() {
        write_frame(frames, None, Some("values"), values);
    }
    write_frame(frames, None, Some("end"), &());
}
