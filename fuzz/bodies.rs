//! Reads arbitrary bytes, for the fuzz targets, and for random bytes in the test suite. Bytes may
//! be refused; they must not make anything panic, and what is read must be written as it can be
//! read again. Prompts, schemas, patterns and responses of models take bounded time and memory;
//! that they need little stack is shown where these are called on a small one.

use std::collections::BTreeMap;
use std::slice::Chunks;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use agent::definition::HookConfig;
use agent::hooks::HookRegistry;
use agent::prompt::{check_prompt, render_prompt};
use agent::state::{AgentState, StateAddition};
use agent::{CompiledFormat, builtin_hooks};
use models::{CapSettings, Frame, ProviderKind, ProviderSettings, SseDecoder};
use store::codec::{EncodedSegment, Payload};
use values::ids::UuidV7Source;
use values::json::{Object, Value};
use values::model_ref::ResponseFormat;

/// Far above what any bytes may take: neither builds of tests nor those of fuzzers are fast.
const LONG: Duration = Duration::from_mins(1);
/// The memory that a prompt may hold at a time beside itself: a multiple of the most bytes of one.
const PROMPT_MEMORY: usize = 16 << 20;
/// The memory that a schema and the check of a value by it may hold at a time beside the value.
const SCHEMA_MEMORY: usize = 24 << 20;
/// The memory that the patterns of a hook may hold while they are compiled.
const PATTERN_MEMORY: usize = 64 << 20;
/// The memory that a decoder of responses may hold at a time, for any input.
const DECODER_MEMORY: usize = 64 << 10;
/// The memory that JSON takes for each of its bytes: an item of a list is written in two of them,
/// an object in four.
const PER_BYTE: usize = 256;

/// The state of an agent, as JSON; returns whether it was read.
pub(crate) fn agent_state(bytes: &[u8]) -> bool {
    let Ok(state) = serde_json::from_slice(bytes).and_then(AgentState::from_json) else {
        return false;
    };
    let written = state.to_json().unwrap();
    let read = AgentState::from_json(written.clone()).unwrap();
    assert_eq!(read.to_json().unwrap(), written);
    true
}

/// Reads the addition of a step to the state of an agent, as JSON; returns whether it was valid.
pub(crate) fn state_addition(bytes: &[u8]) -> bool {
    let Ok(addition) = serde_json::from_slice::<StateAddition>(bytes) else {
        return false;
    };
    let written = serde_json::to_vec(&addition).unwrap();
    let read: StateAddition = serde_json::from_slice(&written).unwrap();
    assert_eq!(serde_json::to_vec(&read).unwrap(), written);
    true
}

/// The messages of a segment: the first byte is how the rest is compressed, and the second byte
/// is the number of messages in its row. Returns whether they were read.
pub(crate) fn segment(bytes: &[u8]) -> bool {
    let [how, count, rest @ ..] = bytes else { return false };
    let stored = Payload {
        schema_version: 1,
        encoding: i16::from(*how),
        bytes: rest.to_vec(),
    };
    let Ok(messages) = EncodedSegment::from_stored(i64::from(*count), stored).decode() else {
        return false;
    };
    let read = EncodedSegment::encode(&messages).unwrap().decode().unwrap();
    assert_eq!(read.len(), messages.len());
    true
}

/// Server-sent events, in pieces of the size in the first byte.
pub(crate) fn sse(bytes: &[u8]) {
    const LIMIT: usize = 256;
    let [size, rest @ ..] = bytes else { return };
    // A byte that is not UTF-8 becomes a character of three.
    let check = |event: Frame<'_>| assert!(event.data.len() <= 3 * LIMIT);
    bounded(DECODER_MEMORY + PER_BYTE * bytes.len(), || {
        let mut decoder = SseDecoder::new(LIMIT);
        for mut piece in rest.chunks(usize::from(*size).max(1)) {
            loop {
                match decoder.next(&mut piece) {
                    Ok(Some(event)) => check(event),
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
        }
        decoder.finish().into_iter().for_each(check);
    });
}

/// A response of each protocol, in pieces as above.
pub(crate) fn response(bytes: &[u8]) {
    // Tables are read once, whichever response is the first that needs them.
    static TABLES: Once = Once::new();
    let [size, rest @ ..] = bytes else { return };
    for kind in ProviderKind::OVER_HTTP {
        let settings = ProviderSettings {
            base_url: Some("https://h.example".to_owned()),
            ..ProviderSettings::new("p", kind)
        };
        let wire = models::wire(&settings).unwrap().unwrap();
        let decode = |content_type: Option<&str>, mut pieces: Chunks<'_, u8>| {
            let mut decoder = wire.decoder(content_type, CapSettings::default(), Arc::new(UuidV7Source));
            let mut events = Vec::new();
            let is_read = pieces.all(|piece| {
                events.clear();
                decoder.push(piece, &mut events).is_ok()
            });
            if is_read {
                // It need not be a response.
                let _ = decoder.finish(&mut events);
            }
        };
        TABLES.call_once(|| {
            decode(None, br#"data: {"error": {"message": "words"}}"#.chunks(1));
        });
        for content_type in [None, Some("text/event-stream"), Some("application/json")] {
            let pieces = rest.chunks(usize::from(*size).max(1));
            bounded(DECODER_MEMORY + PER_BYTE * bytes.len(), || decode(content_type, pieces));
        }
    }
}

/// A system prompt. What is stored can be refused, and so can what was stored before; neither
/// exhausts anything.
pub(crate) fn prompt(bytes: &[u8]) {
    let template = String::from_utf8_lossy(bytes);
    let items: Vec<Value> = (0..100).map(|number| Value::from("item ".repeat(number))).collect();
    let variables = BTreeMap::from([
        ("a".to_owned(), Value::from(items)),
        ("b".to_owned(), Value::from("text ".repeat(1_000))),
    ]);
    let rendered = bounded(PROMPT_MEMORY + 2 * template.len(), || {
        // Whether it is a prompt is not the question.
        let _ = check_prompt(&template);
        render_prompt(&template, &variables, &Object::new())
    });
    if let Ok(prompt) = rendered {
        // Without a tag it is shown as it is.
        assert!(prompt.len() <= 1 << 20 || prompt == template);
    }
}

/// A schema, then a value to check by it, as JSON one after the other.
pub(crate) fn schema(bytes: &[u8]) {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
    let (Some(Ok(schema)), Some(Ok(value))) = (values.next(), values.next()) else {
        return;
    };
    let format = ResponseFormat::JsonSchema {
        name: "a".to_owned(),
        schema,
        strict: false,
    };
    let value = value.to_string();
    bounded(SCHEMA_MEMORY + PER_BYTE * bytes.len(), || {
        let size = CompiledFormat::check_size(&format);
        match CompiledFormat::of(&format) {
            Ok(shape) => {
                assert!(size.is_ok());
                // Whether it fits is not the question.
                let _ = shape.read(&value);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    });
}

/// Patterns of the hook `redaction`, one in each line. Whether they can be used is not the
/// question.
pub(crate) fn redaction(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let patterns = text
        .lines()
        .map(|regex| serde_json::json!({"name": "a", "regex": regex}));
    let patterns = patterns.collect::<Vec<_>>();
    let hook = serde_json::json!({"name": "redaction", "config": {"patterns": patterns}});
    let hook: HookConfig = serde_json::from_value(hook).unwrap();
    let registry = HookRegistry::new(builtin_hooks());
    bounded(PATTERN_MEMORY + PER_BYTE * bytes.len(), || {
        if let Err(error) = registry.check(&[hook]) {
            assert!(!error.to_string().is_empty());
        }
    });
}

/// Does the work in bounded time and memory. It counts what this thread has allocated.
fn bounded<T>(most: usize, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let mut result = None;
    let taken = allocation_counter::measure(|| result = Some(work()));
    assert!(
        taken.bytes_max <= most as u64,
        "{} bytes, and not {most}",
        taken.bytes_max
    );
    assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
    result.unwrap()
}
