//! Tests against the golden files in `tests/golden`, which show each version of each payload. The
//! file of a version never changes.
//!
//! `KIND-vN.json` is the fixture as version N wrote it. `KIND-future.json` is a form that a later
//! version might write.

mod fixtures;
mod waiting;

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::json;

use super::messages::{encode_messages, read_messages};
use super::*;
use agent::state::{AgentState, ErrorKind, ExecutionStatus, StateAddition, StopReason, ToolVerdict};
use values::json::Value;
use values::message::ContentPart;
use values::model_ref::ResponseFormat;
use values::session::StoredContext;

/// A kind of payload.
struct Kind {
    name: &'static str,
    newest: i16,
    /// Encodes the fixture.
    encode: fn() -> Payload,
    /// Decodes the file of a version, and compares it with the fixture.
    check: fn(StoredPayload<'_>),
}

/// All steps of a run.
const ALL: &std::ops::Range<u64> = &(0..u64::MAX);

/// A journal entry: the fixture at the index.
macro_rules! journal_kind {
    ($name:literal, $index:literal) => {
        Kind {
            name: $name,
            newest: JOURNAL_VERSION,
            encode: || encode_journal_entry(&fixtures::journal()[$index]).unwrap(),
            check: |stored| assert_eq!(decode_journal_entry(stored).unwrap(), fixtures::journal()[$index]),
        }
    };
}

const KINDS: [Kind; 22] = [
    Kind {
        name: "messages",
        newest: SEGMENT_VERSION,
        encode: || payload(SEGMENT_VERSION, encode_messages(&fixtures::messages()).unwrap()),
        check: |stored| {
            let bytes = open_payload(stored, SEGMENT_VERSION).unwrap();
            assert_eq!(read_messages(&bytes).unwrap().0, fixtures::messages());
        },
    },
    Kind {
        name: "context",
        newest: CONTEXT_VERSION,
        encode: || encode_context(&fixtures::context()).unwrap().1,
        check: |stored| check_context(stored, &fixtures::context()),
    },
    Kind {
        name: "context_overrides",
        newest: CONTEXT_VERSION,
        encode: || encode_context(&fixtures::overriding_context()).unwrap().1,
        check: |stored| check_context(stored, &fixtures::overriding_context()),
    },
    Kind {
        name: "context_waiting",
        newest: CONTEXT_VERSION,
        encode: || encode_context(&waiting::waiting_context()).unwrap().1,
        check: |stored| check_context(stored, &waiting::waiting_context()),
    },
    Kind {
        name: "environment",
        newest: ENVIRONMENT_VERSION,
        encode: || encode_environment(&fixtures::environment()).unwrap().1,
        check: |stored| assert_eq!(decode_environment(stored).unwrap(), fixtures::environment()),
    },
    Kind {
        name: "environment_files",
        newest: ENVIRONMENT_VERSION,
        encode: || encode_environment(&fixtures::environment_with_files()).unwrap().1,
        check: |stored| assert_eq!(decode_environment(stored).unwrap(), fixtures::environment_with_files()),
    },
    Kind {
        name: "run_output",
        newest: RUN_VERSION,
        encode: || encode_output(&fixtures::record(), false).unwrap(),
        check: |stored| {
            let read = decode_output(stored).unwrap();
            // The session has the messages.
            assert_eq!((read.messages, read.stop_signal), (Vec::new(), None));
            assert_eq!(read.value, fixtures::record().value);
        },
    },
    Kind {
        name: "run_output_failed",
        newest: RUN_VERSION,
        encode: || encode_output(&waiting::failed_record(), true).unwrap(),
        check: |stored| assert_eq!(decode_output(stored).unwrap().input, waiting::failed_record().input),
    },
    Kind {
        name: "run_output_waiting",
        newest: RUN_VERSION,
        encode: || encode_output(&waiting::waiting_record(), true).unwrap(),
        check: |stored| {
            let (read, record) = (decode_output(stored).unwrap(), waiting::waiting_record());
            let expected = (record.output, record.open_calls, record.echo);
            assert_eq!((read.messages, read.open_calls, read.echo), expected);
        },
    },
    Kind {
        name: "steps",
        newest: RUN_VERSION,
        encode: || encode_steps(&fixtures::steps()).unwrap(),
        check: |stored| assert_eq!(decode_steps(stored, ALL).unwrap().0, fixtures::steps()),
    },
    Kind {
        name: "definition",
        newest: DEFINITION_VERSION,
        encode: || encode_definition(&fixtures::definition()).unwrap().1,
        check: |stored| assert_eq!(decode_definition(stored).unwrap(), fixtures::definition()),
    },
    journal_kind!("journal_subagent_begun", 0),
    journal_kind!("journal_reached", 1),
    journal_kind!("journal_calls_requested", 2),
    journal_kind!("journal_call_decided", 3),
    journal_kind!("journal_call_begun", 4),
    journal_kind!("journal_call_ended", 5),
    journal_kind!("journal_subagent_environment", 6),
    journal_kind!("journal_environment_changed", 7),
    journal_kind!("journal_call_approved", 8),
    Kind {
        name: "events",
        newest: EVENTS_VERSION,
        encode: || encode_events(&fixtures::events()).unwrap(),
        check: |stored| assert_eq!(decode_events(stored).unwrap(), fixtures::events()),
    },
    Kind {
        name: "steering",
        newest: STEERING_VERSION,
        encode: || encode_steering(&fixtures::messages()[0]).unwrap(),
        check: |stored| assert_eq!(decode_steering(stored).unwrap(), *fixtures::messages()[0]),
    },
];

fn check_context(stored: StoredPayload<'_>, expected: &StoredContext) {
    assert_eq!(decode_context(stored, expected.agent_instance()).unwrap(), *expected);
}

fn payload(schema_version: i16, bytes: Vec<u8>) -> Payload {
    Payload {
        schema_version,
        encoding: 0,
        bytes,
    }
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/golden")
        .join(name)
}

fn read(name: &str) -> Vec<u8> {
    fs::read(file(name)).unwrap_or_else(|error| panic!("tests/golden/{name}: {error}"))
}

/// Decodes a file as if the current version had written it.
fn read_future<T>(name: &str, decode: fn(StoredPayload<'_>) -> Result<T, DecodeError>) -> (Value, T) {
    let bytes = read(name);
    let value = decode(payload(1, bytes.clone()).as_stored()).unwrap();
    (serde_json::from_slice(&bytes).unwrap(), value)
}

/// Reads a file of a value that is only stored inside journals.
fn read_future_json<T>(name: &str, from_json: fn(Value) -> serde_json::Result<T>) -> (Value, T) {
    let stored: Value = serde_json::from_slice(&read(name)).unwrap();
    (stored.clone(), from_json(stored).unwrap())
}

fn written(payload: &Payload) -> Value {
    serde_json::from_slice(&open_payload(payload.as_stored(), i16::MAX).unwrap()).unwrap()
}

#[test]
fn what_every_version_wrote_is_read() {
    for kind in KINDS {
        for version in 1..=kind.newest {
            let stored = payload(version, read(&format!("{}-v{version}.json", kind.name)));
            (kind.check)(stored.as_stored());
        }
        let newer = payload(kind.newest + 1, b"[]".to_vec());
        let error = open_payload(newer.as_stored(), kind.newest).unwrap_err();
        assert!(matches!(error, DecodeError::NewerVersion { .. }), "{error}");
    }
}

#[test]
fn what_is_written_now_is_the_newest_version() {
    for kind in KINDS {
        let payload = (kind.encode)();
        assert_eq!(payload.schema_version, kind.newest, "{}", kind.name);
        let now = open_payload(payload.as_stored(), kind.newest).unwrap();
        let name = format!("{}-v{}.json", kind.name, kind.newest);
        if fs::read(file(&name)).is_ok_and(|golden| golden == *now) {
            continue;
        }
        let proposal = env::temp_dir().join(&name);
        fs::write(&proposal, &now).unwrap();
        panic!(
            "tests/golden/{name} is not what this code writes, which is in {}.\n\
             Stored rows keep the form of the file. If the form must change, raise the version of this kind in \
             crates/store/src/codec/mod.rs, decode both versions, leave the file as it is, and add what is written now as the file of \
             the new version. If only the file is missing, add it.",
            proposal.display()
        );
    }
}

#[test]
fn a_payload_of_each_encoding_is_read() {
    for (encoding, name) in [(0, "messages-v1.json"), (1, "messages-v1.json.zst")] {
        let stored = Payload {
            schema_version: 1,
            encoding,
            bytes: read(name),
        };
        (KINDS[0].check)(stored.as_stored());
    }
}

#[test]
fn messages_of_the_future_are_read_and_retained() {
    let (stored, (messages, _)) = read_future("messages-future.json", |stored| {
        read_messages(&open_payload(stored, SEGMENT_VERSION)?)
    });
    let again: Value = serde_json::from_slice(&encode_messages(&messages).unwrap()).unwrap();
    assert_eq!(again, stored);
    assert_eq!(messages.len(), fixtures::messages().len() + 1);
    for (message, known) in messages.iter().zip(fixtures::messages()) {
        assert_eq!((message.id, &message.tags), (known.id, &known.tags));
        assert_eq!(message.joined_text(), known.joined_text());
    }
    let last = messages.last().unwrap();
    assert!(
        matches!(last.content[..], [ContentPart::Unknown(_), ContentPart::Unknown(_)]),
        "{last:?}"
    );
}

#[test]
fn states_of_bundles_of_the_future_are_read_and_retained() {
    let encode = |context: &StoredContext| written(&encode_context(context).unwrap().1);
    let agent = fixtures::context().agent_instance();
    let bytes = read("context-future.json");
    let context = decode_context(payload(CONTEXT_VERSION, bytes.clone()).as_stored(), agent).unwrap();
    assert_eq!(context.agent_instance(), agent);
    assert_eq!(context.system_prompt, fixtures::context().system_prompt);
    assert_eq!(context.response_format, ResponseFormat::Text);
    assert_eq!(encode(&context), serde_json::from_slice::<Value>(&bytes).unwrap());
    // A new format replaces the unknown one completely.
    let changed = StoredContext {
        response_format: ResponseFormat::JsonObject,
        ..context
    };
    assert_eq!(encode(&changed)["response_format"], json!({"type": "json_object"}));

    // If this version can't read an override, the agent's own setting applies and the override is
    // retained. The other overrides stay in force.
    let overriding = fixtures::overriding_context();
    let mut stored = encode(&overriding);
    stored["overrides"]["parameters"]["zz_new"] = json!(1);
    let bytes = serde_json::to_vec(&stored).unwrap();
    let stored_now = payload(CONTEXT_VERSION, bytes);
    let context = decode_context(stored_now.as_stored(), overriding.agent_instance()).unwrap();
    assert_eq!(context.overrides, overriding.overrides);
    assert_eq!(encode(&context), stored);

    let (stored, environment) = read_future("environment-future.json", decode_environment);
    assert_eq!(written(&encode_environment(&environment).unwrap().1), stored);
}

#[test]
fn steps_of_the_future_are_read() {
    let (_, (steps, _)) = read_future("steps-future.json", |stored| decode_steps(stored, ALL));
    assert_eq!(steps.len(), fixtures::steps().len());
    assert_eq!(steps[0].step_type, agent::state::AgentStepType::Unknown);
}

/// A definition with a field unknown to this version is refused as a whole.
#[test]
fn a_definition_of_the_future_is_refused_by_name() {
    let error = decode_definition(payload(1, read("definition-future.json")).as_stored()).unwrap_err();
    let DecodeError::Json(error) = error else {
        panic!("{error}")
    };
    assert!(error.to_string().contains("unknown field `zz_new`"), "{error}");
}

#[test]
fn agent_states_of_the_future_are_read_and_retained() {
    let (stored, state) = read_future_json("agent_state-future.json", AgentState::from_json);
    assert_eq!(state.to_json().unwrap(), stored);
    let execution = state.execution().unwrap();
    assert_eq!(execution.status, ExecutionStatus::Unknown);
    let [first, second] = [0, 1].map(|at| execution.step_executions.get(at).unwrap());
    assert_eq!(first.step.tool_executions[1].verdict, ToolVerdict::Unknown);
    let subagent = first.step.tool_executions[0].trace.subagent.as_ref().unwrap();
    let ended = (subagent.status, subagent.stop_reason);
    assert_eq!(ended, (ExecutionStatus::Unknown, Some(StopReason::Unknown)));
    assert_eq!(second.step.errors.last().unwrap().kind, ErrorKind::Unknown);
    assert_eq!(state.context().response_format, ResponseFormat::Text);

    let (stored, addition) = read_future_json("state_addition-future.json", serde_json::from_value::<StateAddition>);
    assert_eq!(serde_json::to_value(addition).unwrap(), stored);
}

/// A worker continues a run that a later version started, and loses no unknown field.
#[test]
fn journals_of_the_future_are_read_and_retained() {
    let (stored, entry) = read_future("journal_calls_requested-future.json", decode_journal_entry);
    assert_eq!(written(&encode_journal_entry(&entry).unwrap()), stored);
    let unknown = payload(1, br#"{"type": "dreamt", "of": "sheep"}"#.to_vec());
    let error = decode_journal_entry(unknown.as_stored()).unwrap_err();
    assert!(matches!(error, DecodeError::Json(_)), "{error}");
}

/// The next execution does not inherit unknown fields of the stored one.
#[test]
fn the_next_execution_takes_nothing_of_the_last_one_along() {
    let (stored, state) = read_future_json("agent_state-future.json", AgentState::from_json);
    let now = state.updated_at();
    let next: AgentState = state.start_execution(state_execution_id(), now);
    let again = next.to_json().unwrap();
    assert!(again["execution"].get("zz_new").is_none(), "{again}");
    assert_eq!(again["zz_new"], stored["zz_new"]);
    assert_eq!(again["context"]["store"], stored["context"]["store"]);
}

fn state_execution_id() -> values::ids::ExecutionId {
    values::ids::ExecutionId::from_uuid(uuid::Uuid::nil())
}
