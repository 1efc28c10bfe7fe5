//! The schemas of streamed events, for the OpenAPI document. Documentation only; `events.rs` writes
//! the events.

use std::borrow::Cow;

use serde::Serialize;
use utoipa::openapi::schema::{KnownFormat, Object, SchemaFormat, Type};
use utoipa::openapi::{ObjectBuilder, OneOfBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::http::described_schemas::instant;
use agent::AgentEvent;
use agent::record::{RunSummaryView, RunView};
use values::ids::{RunId, SessionId};
use values::session::Hash;

/// The content of the line `data` of an event.
#[derive(Debug)]
pub(super) struct EventForm;

/// The events of a run itself.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", content = "data")]
#[expect(dead_code, reason = "describes the form alone")]
enum RunForm {
    /// The run begins: always the first event.
    #[serde(rename = "run.started")]
    Started(RunSummaryView),
    /// Another worker continues the run. Events after the last completed step do not count.
    #[serde(rename = "run.resumed")]
    Resumed {
        /// How often a worker has begun the run, this time included.
        attempts: u32,
        /// The number of completed steps that remain.
        step_count: u64,
    },
    /// The session is published and can be read.
    #[serde(rename = "session.committed")]
    SessionCommitted {
        /// The session.
        session_id: SessionId,
        /// The session that it continues.
        parent_session_id: Option<SessionId>,
        /// Its root hash.
        root_hash: Hash,
    },
    /// The run ended with its work done.
    #[serde(rename = "run.completed")]
    Completed(RunView),
    /// The run ended before its work was done.
    #[serde(rename = "run.stopped")]
    Stopped(RunView),
    /// The run ended with calls that wait for answers of the caller.
    #[serde(rename = "run.waiting")]
    Waiting(RunView),
    /// The run ended by an error.
    #[serde(rename = "run.failed")]
    Failed(RunView),
    /// The run ended by the caller.
    #[serde(rename = "run.cancelled")]
    Cancelled(RunView),
}

/// The events of a reader alone.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", content = "data")]
#[expect(dead_code, reason = "describes the form alone")]
enum ReaderForm {
    /// The last event of a reader that is dropped. It has no `id`: it is about the reader, not the
    /// run.
    #[serde(rename = "stream.dropped")]
    Dropped {
        /// Why, in words.
        reason: String,
        /// The number of the last event that was sent.
        after: u64,
    },
}

impl PartialSchema for EventForm {
    fn schema() -> RefOr<Schema> {
        let numbered = forms(RunForm::schema()).into_iter().chain(forms(AgentEvent::schema()));
        let reader_events = forms(ReaderForm::schema()).into_iter().map(with_run_id);
        let words = "An event of a run: the JSON in the line `data` of a server-sent event.";
        let union = OneOfBuilder::new().description(Some(words));
        let members = numbered.map(with_run_id).map(with_number).chain(reader_events);
        members.fold(union, OneOfBuilder::item).into()
    }
}

impl ToSchema for EventForm {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Event")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((AgentEvent::name().into_owned(), AgentEvent::schema()));
        AgentEvent::schemas(schemas);
        RunForm::schemas(schemas);
        ReaderForm::schemas(schemas);
    }
}

/// Returns the forms of a union.
fn forms(union: RefOr<Schema>) -> Vec<Object> {
    let RefOr::T(Schema::OneOf(union)) = union else {
        return Vec::new();
    };
    let forms = union.items.into_iter().filter_map(|form| match form {
        RefOr::T(Schema::Object(form)) => Some(form),
        _ => None,
    });
    forms.collect()
}

fn with_run_id(event: Object) -> Object {
    with(event, "run_id", RunId::schema())
}

fn with_number(event: Object) -> Object {
    let number = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(1))
        .description(Some("The number of the event, from 1 without gaps; its `id`."));
    let event = with(event, "sequence", number.into());
    with(event, "time", instant("When it happened.").into())
}

fn with(mut event: Object, name: &str, value: RefOr<Schema>) -> Object {
    event.properties.insert(name.to_owned(), value);
    event.required.push(name.to_owned());
    event
}
