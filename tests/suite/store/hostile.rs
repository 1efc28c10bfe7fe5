//! Arbitrary and damaged bytes against every decoder and against prompts: the bodies of the fuzz targets.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;

#[path = "../../../fuzz/bodies.rs"]
mod bodies;

type Body = fn(&[u8]);

const BODIES: [Body; 10] = [
    bodies::agent_state,
    bodies::state_addition,
    bodies::segment,
    bodies::sse,
    bodies::openai_chat,
    bodies::anthropic,
    bodies::openai_responses,
    bodies::gemini,
    bodies::prompt,
    bodies::bedrock,
];

fn golden(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)).unwrap()
}

/// What the bodies are given: bytes that say how to read the rest, then what is stored.
fn stored() -> Vec<(Body, Vec<u8>)> {
    let uncompressed = |name: &str| [&[0][..], &golden(name)].concat();
    let messages = |how: &[u8], name: &str| [how, &golden(name)].concat();
    vec![
        (bodies::agent_state, uncompressed("agent_state_full-v1.json")),
        (bodies::agent_state, uncompressed("agent_state_full-future.json")),
        (bodies::state_addition, uncompressed("state_addition-v1.json")),
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

#[test]
fn what_is_stored_is_read_by_the_bodies() {
    for (body, bytes) in stored() {
        body(&bytes);
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
        for body in BODIES {
            body(&bytes);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_bytes_make_a_decoder_panic(bytes in prop_oneof![soup(), prop::collection::vec(any::<u8>(), 0..200)]) {
        for body in BODIES {
            body(&bytes);
        }
    }

    #[test]
    fn no_prompt_exhausts_the_stack_or_the_time(bytes in template()) {
        bodies::prompt(&bytes);
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
