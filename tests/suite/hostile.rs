//! Arbitrary and damaged bytes for every decoder, and for prompts, schemas and patterns: the bodies
//! of the fuzz targets, which bound time and memory, on small stacks.

use std::fs;
use std::panic;
use std::path::Path;
use std::thread;

use proptest::prelude::*;
use proptest::sample::Index;
use test_support::samples::ALL;
use test_support::small_frames::{SMALL_FRAMES_OF_AWS, of_aws};

#[path = "../../fuzz/bodies.rs"]
mod bodies;

/// Half of what an async worker has; builds of tests need several times as much as optimised ones.
const PROMPT_STACK: usize = 1 << 20;
/// The stack of a blocking thread, on which values are checked by schemas.
const SCHEMA_STACK: usize = 2 << 20;
/// Less than any thread of the service has.
const STREAM_STACK: usize = 512 << 10;

/// Tells whether the bytes were read.
type StoredBody = fn(&[u8]) -> bool;

const STORED_BODIES: [StoredBody; 3] = [bodies::agent_state, bodies::state_addition, bodies::segment];

const STREAM_BODIES: [fn(&[u8]); 2] = [bodies::sse, bodies::response];

const OTHER_BODIES: [fn(&[u8]); 3] = [bodies::prompt, bodies::schema, bodies::redaction];

fn golden(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)).unwrap()
}

/// The input of the bodies: stored bytes, possibly compressed, after bytes that say how to read
/// them.
fn stored() -> Vec<(StoredBody, Vec<u8>)> {
    let messages = |how: &[u8], name: &str| [how, &golden(name)].concat();
    vec![
        (bodies::agent_state, golden("agent_state-future.json")),
        (bodies::state_addition, golden("state_addition-future.json")),
        (bodies::segment, messages(&[0, 7], "messages-v1.json")),
        (bodies::segment, messages(&[0, 8], "messages-future.json")),
        (bodies::segment, messages(&[1, 7], "messages-v1.json.zst")),
    ]
}

/// Pieces of JSON and of event streams: they come further than random bytes.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "\"",
        "null",
        "-1",
        "1e999",
        "\"id\":",
        "\"content\":[",
        "\"type\":\"text\"",
        "\"state\":{",
        "\"execution\":{",
        "\"first_index\":18446744073709551615",
        "data: ",
        "\n\n",
        "event: x\n",
        "\u{FEFF}",
        "\"candidates\":[",
        "\"parts\":[",
        "\\ud800",
    ]);
    let piece = prop_oneof![
        6 => words.prop_map(|word| word.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ];
    (0..3_u8, prop::collection::vec(piece, 0..24)).prop_map(|(how, pieces)| [vec![how], pieces.concat()].concat())
}

/// Pieces of patterns.
fn patterns() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "\n", "(", "(?i)", "(?:", ")", "[", "[^", "]", "a", "-", "z", "\\w", "\\pL", "\\b", "^", "$", ".", "|", "*",
        "+", "?", "{2}", "{100}", "{1000}", "{1,30}", "&&", "é",
    ]);
    prop::collection::vec(words, 0..60).prop_map(|words| words.concat().into_bytes())
}

/// Pieces of prompts: they come further than random bytes, in every order and at every length.
fn template() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "#}",
        "{#}",
        "{{-",
        "-%}",
        "+}}",
        " if ",
        " elif ",
        " else ",
        " endif ",
        " for x in ",
        " endfor ",
        " not ",
        " in ",
        " is ",
        " and ",
        " or ",
        "defined",
        "|",
        "upper",
        "trim",
        "default",
        "(",
        ")",
        "[",
        "]",
        ".",
        ":",
        "-",
        "/",
        "//",
        "%",
        "<",
        "==",
        "variables",
        "a",
        ".a",
        ".b",
        "x",
        "loop",
        "1",
        "0",
        "'",
        "'y'",
        "\"",
        "\\",
        " ",
        "\n",
        "raw",
        "{% if a %}",
        "{% for x in variables.a %}",
        "{% endfor %}",
        "{% endif %}",
        "{{ variables.b }}",
        "é",
    ]);
    let piece =
        (words, prop_oneof![6 => Just(1_usize), 1 => 1..300_usize]).prop_map(|(word, count)| word.repeat(count));
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat().into_bytes())
}

/// A schema made of every way to use another one, and a value.
fn schema_and_value() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop::sample::select(vec![
        "{}",
        "true",
        "false",
        r##"{"$ref":"#"}"##,
        r##"{"$ref":"#/$defs/a"}"##,
        r##"{"$ref":"#/$defs/b"}"##,
        r#"{"type":"integer"}"#,
        r#"{"pattern":"^(a|b)*$"}"#,
        r#"{"enum":[1,"a",[{}]]}"#,
        r#"{"minLength":2}"#,
        "[]",
        "1",
    ]);
    let schema = leaf.prop_map(str::to_owned).prop_recursive(6, 60, 4, |inner| {
        let keyword = prop::sample::select(vec![
            ("anyOf", "["),
            ("allOf", "["),
            ("oneOf", "["),
            ("not", ""),
            ("if", ""),
            ("then", ""),
            ("items", ""),
            ("contains", ""),
            ("properties", "{"),
            ("dependentSchemas", "{"),
            ("additionalProperties", ""),
            ("unevaluatedProperties", ""),
            ("unevaluatedItems", ""),
            ("propertyNames", ""),
            ("prefixItems", "["),
            ("patternProperties", "{"),
            ("$defs", "{"),
        ]);
        let member = (keyword, inner.clone(), inner).prop_map(|((name, kind), one, other)| match kind {
            "[" => format!(r#""{name}":[{one},{other}]"#),
            "{" => format!(r#""{name}":{{"a":{one},"b":{other}}}"#),
            _ => format!(r#""{name}":{one}"#),
        });
        prop::collection::btree_set(member, 1..4)
            .prop_map(|members| format!("{{{}}}", members.into_iter().collect::<Vec<_>>().join(",")))
    });
    let deep = r#"{"a":"#.repeat(60) + "[1,2]" + &"}".repeat(60);
    let value = prop::sample::select(vec![
        "{}".to_owned(),
        r#"{"a":{"b":["a",1,[]]},"b":"aab"}"#.to_owned(),
        deep,
    ]);
    (schema.clone(), schema.clone(), schema, value).prop_map(|(root, a, b, value)| {
        format!(
            r#"{{"type":"object","allOf":[{root}],"properties":{{"a":{root}}},"$defs":{{"a":{a},"b":{b}}}}}{value}"#
        )
        .into_bytes()
    })
}

/// A stream of small frames of any protocol, with numbers and values that do not belong there, and
/// cut anywhere.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let of_sse = ALL
        .into_iter()
        .flat_map(|samples| samples.small_frames.iter().copied().flatten());
    let of_sse = of_sse.map(|frame| ("", *frame));
    let number = prop::sample::select(vec!["0", "1", "2", "65536", "4294967295", "18446744073709551615", "-1"]);
    let value = prop::sample::select(vec![
        r#""x""#.to_owned(),
        "null".to_owned(),
        "1e999".to_owned(),
        "[".repeat(200) + &"]".repeat(200),
        "[".repeat(500),
        format!("[{}]", vec!["0"; 500].join(",")),
        format!("[{}]", vec![r#"{"":0}"#; 100].join(",")),
        format!("\"{}\"", "\\n".repeat(500)),
    ]);
    let repeat = prop_oneof![6 => Just(1_usize), 1 => 1..100_usize];
    let piece = |frames: Vec<(&'static str, &'static str)>| {
        let parts = (
            prop::sample::select(frames),
            number.clone(),
            value.clone(),
            repeat.clone(),
        );
        let pieces = parts.prop_map(|((event, frame), number, value, repeat)| {
            let text = frame
                .replace('@', number)
                .replacen(r#""x""#, &value, 1)
                .replacen(":0", &format!(":{value}"), 1);
            let bytes = if event.is_empty() {
                format!("data: {text}\n\n").into_bytes()
            } else {
                of_aws(event, &text)
            };
            bytes.repeat(repeat)
        });
        prop::collection::vec(pieces, 0..10)
    };
    let pieces = prop_oneof![4 => piece(of_sse.collect()), 1 => piece(SMALL_FRAMES_OF_AWS.to_vec())];
    (any::<u8>(), pieces, any::<Index>(), any::<bool>()).prop_map(|(size, pieces, end, is_cut)| {
        let mut bytes = [vec![size], pieces.concat()].concat();
        if is_cut {
            bytes.truncate(end.index(bytes.len()));
        }
        bytes
    })
}

/// Has the bodies read the bytes where there is no more stack than this.
fn on_a_stack(size: usize, bodies: &'static [fn(&[u8])], bytes: Vec<u8>) {
    let work = move || bodies.iter().for_each(|body| body(&bytes));
    let thread = thread::Builder::new().stack_size(size).spawn(work).unwrap();
    thread.join().unwrap_or_else(|cause| panic::resume_unwind(cause));
}

#[test]
fn what_is_stored_is_read_by_the_bodies() {
    for (number, (body, bytes)) in stored().into_iter().enumerate() {
        assert!(body(&bytes), "the body {number} refuses what is stored");
    }
}

#[test]
fn deeply_nested_and_bloated_bytes_are_refused() {
    let deep = [&[0, 1][..], &b"[".repeat(1 << 20)].concat();
    // A frame that promises 2^40 bytes.
    let bomb = [
        &[1, 0x28, 0xb5, 0x2f, 0xfd, 0xe0][..],
        &(1_u64 << 40).to_le_bytes(),
        &[1, 0, 0],
    ]
    .concat();
    for bytes in [deep, bomb] {
        for body in STORED_BODIES {
            assert!(!body(&bytes));
        }
        for body in STREAM_BODIES.iter().chain(&OTHER_BODIES) {
            body(&bytes);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_bytes_make_a_decoder_panic(bytes in prop_oneof![soup(), prop::collection::vec(any::<u8>(), 0..200)]) {
        for body in STORED_BODIES {
            body(&bytes);
        }
        for body in STREAM_BODIES.iter().chain(&OTHER_BODIES) {
            body(&bytes);
        }
    }

    #[test]
    fn no_prompt_exhausts_the_stack_the_memory_or_the_time(bytes in template()) {
        on_a_stack(PROMPT_STACK, &[bodies::prompt], bytes);
    }

    #[test]
    fn no_pattern_exhausts_the_stack_the_memory_or_the_time(bytes in patterns()) {
        on_a_stack(SCHEMA_STACK, &[bodies::redaction], bytes);
    }

    #[test]
    fn no_schema_exhausts_the_stack_the_memory_or_the_time(bytes in schema_and_value()) {
        on_a_stack(SCHEMA_STACK, &[bodies::schema], bytes);
    }

    #[test]
    fn no_stream_exhausts_the_stack_the_memory_or_the_time(bytes in stream()) {
        on_a_stack(STREAM_STACK, &STREAM_BODIES, bytes);
    }

    #[test]
    fn no_damage_makes_a_decoder_panic(
        which in any::<Index>(), at in any::<Index>(), end in any::<Index>(), byte in any::<u8>(), is_cut in any::<bool>(),
    ) {
        let (body, mut bytes) = which.get(&stored()).clone();
        *at.get_mut(&mut bytes) = byte;
        if is_cut {
            bytes.truncate(end.index(bytes.len()));
        }
        body(&bytes);
    }
}
