//! The usage of a completion, in the form of each protocol. Counts are those of [`counts`].

use models::{CapSettings, ProviderKind};
use serde_json::{Value, json};
use test_support::bedrock_frames::event;
use test_support::wires;
use values::usage::{Cost, Usage};

use super::support::decode;

/// Returns the counts: input, output, read from the cache, written to it, reasoning, total.
fn counts(usage: &Usage) -> [u64; 6] {
    [
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
        usage.total_tokens,
    ]
}

/// Returns the usage of a completion that reports these snapshots, one after another.
fn usage(kind: ProviderKind, snapshots: &[&str]) -> Usage {
    let settings = wires::settings("p", kind);
    let decoder = wires::decoder(&settings, Some("text/event-stream"), CapSettings::default());
    decode(decoder, &[&stream(kind, snapshots)]).1.unwrap().usage
}

fn stream(kind: ProviderKind, snapshots: &[&str]) -> Vec<u8> {
    let (first, rest) = snapshots.split_first().unwrap();
    let frames = match kind {
        ProviderKind::Anthropic => {
            let text = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}}"#;
            let mut frames = vec![
                format!(r#"{{"type":"message_start","message":{{"usage":{first}}}}}"#),
                text.to_owned(),
            ];
            frames.extend(
                rest.iter()
                    .map(|usage| format!(r#"{{"type":"message_delta","usage":{usage}}}"#)),
            );
            frames.push(r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#.to_owned());
            frames.push(r#"{"type":"message_stop"}"#.to_owned());
            frames
        }
        ProviderKind::Gemini => {
            let part = r#"{"content":{"parts":[{"text":"x"}]}}"#;
            let chunk = |usage: &&str| format!(r#"{{"candidates":[{part}],"usageMetadata":{usage}}}"#);
            let mut frames: Vec<_> = snapshots.iter().map(chunk).collect();
            frames.push(r#"{"candidates":[{"finishReason":"STOP"}]}"#.to_owned());
            frames
        }
        ProviderKind::OpenAiResponses => {
            let message = r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}"#;
            let response = format!(r#"{{"status":"completed","usage":{first},"output":[{message}]}}"#);
            vec![format!(r#"{{"type":"response.completed","response":{response}}}"#)]
        }
        ProviderKind::Bedrock => {
            let usage: Value = serde_json::from_str(first).unwrap();
            let events = [
                json!({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "x"}}}),
                json!({"messageStop": {"stopReason": "end_turn"}}),
                json!({"metadata": {"usage": usage}}),
            ];
            return events.iter().flat_map(event).collect();
        }
        // The members beside the choices, since servers put usage into several of them.
        _ => {
            let choice = r#"{"index":0,"message":{"content":"x"},"finish_reason":"stop"}"#;
            vec![format!(r#"{{"choices":[{choice}],{first}}}"#)]
        }
    };
    let frames = frames.iter().map(|frame| format!("data: {frame}\n\n"));
    frames.collect::<String>().into_bytes()
}

#[track_caller]
fn assert_counts(kind: ProviderKind, cases: &[(&[&str], [u64; 6])]) {
    for (snapshots, expected) in cases {
        assert_eq!(counts(&usage(kind, snapshots)), *expected, "{snapshots:?}");
    }
}

#[test]
fn input_of_anthropic_includes_what_the_cache_holds() {
    assert_counts(
        ProviderKind::Anthropic,
        &[
            (&[r#"{"input_tokens":10,"output_tokens":4}"#], [10, 4, 0, 0, 0, 14]),
            (
                &[
                    r#"{"input_tokens":10,"output_tokens":4,"cache_read_input_tokens":100,"cache_creation_input_tokens":1000}"#,
                ],
                [1110, 4, 100, 1000, 0, 1114],
            ),
            (
                &[
                    r#"{"input_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":2,"ephemeral_1h_input_tokens":3}}"#,
                ],
                [6, 0, 0, 5, 0, 6],
            ),
            (
                &[
                    r#"{"input_tokens":10,"output_tokens":1,"cache_read_input_tokens":5}"#,
                    r#"{"output_tokens":9}"#,
                ],
                [15, 9, 5, 0, 0, 24],
            ),
            (
                &[
                    r#"{"input_tokens":10,"output_tokens":1}"#,
                    r#"{"input_tokens":70,"output_tokens":0}"#,
                ],
                [70, 1, 0, 0, 0, 71],
            ),
            (&[r#"{"input_tokens":null,"output_tokens":"many"}"#, "{}"], [0; 6]),
            (
                &[r#"{"input_tokens":18446744073709551615,"output_tokens":1,"cache_read_input_tokens":1}"#],
                [u64::MAX, 1, 1, 0, 0, u64::MAX],
            ),
            (
                &[r#"{"input_tokens":10,"output_tokens":4,"output_tokens_details":{"thinking_tokens":3}}"#],
                [10, 4, 0, 0, 3, 14],
            ),
        ],
    );
}

#[test]
fn usage_that_is_listed_by_iteration_is_the_sum_of_the_list() {
    let compaction =
        r#"{"type":"compaction","input_tokens":100,"output_tokens":131,"cache_creation_input_tokens":55096}"#;
    let message = r#"{"type":"message","input_tokens":229,"output_tokens":5,"cache_creation_input_tokens":0}"#;
    let end = format!(
        r#"{{"input_tokens":229,"output_tokens":5,"cache_creation_input_tokens":0,"output_tokens_details":{{"thinking_tokens":2}},"iterations":[{compaction},{message}]}}"#
    );
    let start = r#"{"input_tokens":100,"output_tokens":1,"cache_creation_input_tokens":55096}"#;
    let begun = format!(r#"{{"input_tokens":100,"iterations":[{compaction}]}}"#);
    let all = [55_425, 136, 0, 55_096, 2, 55_561];
    assert_counts(
        ProviderKind::Anthropic,
        &[
            (&[&end], all),
            // A zero at the end does not change the count of an earlier iteration.
            (&[start, &end], all),
            // A later list replaces an earlier one.
            (&[&begun, &end], all),
            (&[&end, r#"{"output_tokens":5}"#], all),
        ],
    );
    for list in ["[]", "null", "3", "[1,null]"] {
        let usage = format!(r#"{{"input_tokens":1,"output_tokens":2,"iterations":{list}}}"#);
        assert_counts(ProviderKind::Anthropic, &[(&[&usage], [1, 2, 0, 0, 0, 3])]);
    }
}

#[test]
fn thoughts_of_gemini_are_output_and_results_of_tools_are_input() {
    assert_counts(
        ProviderKind::Gemini,
        &[
            (
                &[r#"{"promptTokenCount":10,"candidatesTokenCount":4,"totalTokenCount":14}"#],
                [10, 4, 0, 0, 0, 14],
            ),
            (
                &[
                    r#"{"promptTokenCount":57,"candidatesTokenCount":15,"thoughtsTokenCount":124,"totalTokenCount":196,"cachedContentTokenCount":32}"#,
                ],
                [57, 139, 32, 0, 124, 196],
            ),
            (
                &[
                    r#"{"promptTokenCount":10,"toolUsePromptTokenCount":100,"candidatesTokenCount":5,"totalTokenCount":115}"#,
                ],
                [110, 5, 0, 0, 0, 115],
            ),
            // A later snapshot may be smaller, and may omit counts.
            (
                &[
                    r#"{"promptTokenCount":169,"thoughtsTokenCount":3,"totalTokenCount":172}"#,
                    r#"{"promptTokenCount":79,"candidatesTokenCount":12,"totalTokenCount":94}"#,
                ],
                [79, 15, 0, 0, 3, 94],
            ),
            (
                &[r#"{"promptTokenCount":2,"candidatesTokenCount":3}"#],
                [2, 3, 0, 0, 0, 5],
            ),
            (&[r#"{"promptTokenCount":null,"totalTokenCount":"many"}"#, "{}"], [0; 6]),
            (
                &[r#"{"promptTokenCount":18446744073709551615,"thoughtsTokenCount":1,"toolUsePromptTokenCount":1}"#],
                [u64::MAX, 1, 0, 0, 1, u64::MAX],
            ),
        ],
    );
}

#[test]
fn input_of_bedrock_includes_what_the_cache_holds() {
    assert_counts(
        ProviderKind::Bedrock,
        &[
            (
                &[r#"{"inputTokens":13,"outputTokens":82,"totalTokens":95}"#],
                [13, 82, 0, 0, 0, 95],
            ),
            (
                &[
                    r#"{"inputTokens":2,"outputTokens":5,"cacheReadInputTokens":22,"cacheWriteInputTokens":1300,"totalTokens":1329}"#,
                ],
                [1324, 5, 22, 1300, 0, 1329],
            ),
            (&[r#"{"inputTokens":2,"outputTokens":null}"#], [2, 0, 0, 0, 0, 2]),
            (
                &[r#"{"inputTokens":18446744073709551615,"outputTokens":1,"cacheReadInputTokens":1}"#],
                [u64::MAX, 1, 1, 0, 0, u64::MAX],
            ),
        ],
    );
}

#[test]
fn every_known_dialect_of_chat_completions_is_understood() {
    let (plain, cached) = ([10, 4, 0, 0, 0, 14], [10, 4, 6, 0, 0, 14]);
    assert_counts(
        ProviderKind::OpenAiChat,
        &[
            (&[r#""usage":{"prompt_tokens":10,"completion_tokens":4}"#], plain),
            (
                &[r#""usage":null,"x_groq":{"usage":{"prompt_tokens":10,"completion_tokens":4.0}}"#],
                plain,
            ),
            (&[r#""usage":{"input_tokens":10,"output_tokens":4,"cost":"?"}"#], plain),
            (
                &[r#""usage":{"input_tokens":10,"output_tokens":4,"input_tokens_details":{"cache_write_tokens":2}}"#],
                plain,
            ),
            (
                &[r#""usage":{"prompt_tokens":10,"completion_tokens":4,"prompt_cache_hit_tokens":6}"#],
                cached,
            ),
            (
                &[r#""usage":{"prompt_tokens":10,"completion_tokens":4,"cached_tokens":6}"#],
                cached,
            ),
            (
                &[r#""usage":{"prompt_tokens":10,"completion_tokens":4,"num_cached_tokens":6}"#],
                cached,
            ),
            (
                &[
                    r#""usage":{"prompt_tokens":10,"completion_tokens":4,"num_cached_tokens":6,"cached_tokens":0,"prompt_tokens_details":{"cached_tokens":0}}"#,
                ],
                cached,
            ),
            (
                &[r#""usage":{"prompt_tokens":10,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":6}}"#],
                cached,
            ),
            (
                &[
                    r#""usage":{"prompt_tokens":10,"completion_tokens":4,"total_tokens":20,"completion_tokens_details":{"reasoning_tokens":3},"prompt_tokens_details":{"cache_write_tokens":2}}"#,
                ],
                [10, 4, 0, 2, 3, 20],
            ),
            (
                &[
                    r#""usage":{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14,"completion_tokens_details":{"reasoning_tokens":3}}"#,
                ],
                [10, 4, 0, 0, 3, 14],
            ),
            // Reasoning is separate from the output and billed with it.
            (
                &[
                    r#""usage":{"prompt_tokens":10,"completion_tokens":4,"total_tokens":17,"completion_tokens_details":{"reasoning_tokens":3}}"#,
                ],
                [10, 7, 0, 0, 3, 17],
            ),
            (&[r#""usage":{}"#], [0; 6]),
            (&[r#""usage":null"#], [0; 6]),
            (&[r#""usage":[1]"#], [0; 6]),
            (&[r#""usage":{"prompt_tokens":-3}"#], [0; 6]),
        ],
    );
}

#[test]
fn counts_of_responses_are_read_and_missing_ones_are_zero() {
    let plain = [10, 4, 0, 0, 0, 14];
    assert_counts(
        ProviderKind::OpenAiResponses,
        &[
            (&[r#"{"input_tokens":10,"output_tokens":4}"#], plain),
            (
                &[r#"{"input_tokens":10,"output_tokens":4,"total_tokens":null,"input_tokens_details":null}"#],
                plain,
            ),
            (
                &[
                    r#"{"input_tokens":10,"output_tokens":4,"total_tokens":20,"input_tokens_details":{"cached_tokens":6,"cache_write_tokens":2},"output_tokens_details":{"reasoning_tokens":3}}"#,
                ],
                [10, 4, 6, 2, 3, 20],
            ),
            (
                &[r#"{"input_tokens":18446744073709551615,"output_tokens":4}"#],
                [u64::MAX, 4, 0, 0, 0, u64::MAX],
            ),
            // Reasoning is a part of the output, even if the total has it twice.
            (
                &[
                    r#"{"input_tokens":10,"output_tokens":4,"total_tokens":17,"output_tokens_details":{"reasoning_tokens":3}}"#,
                ],
                [10, 4, 0, 0, 3, 17],
            ),
            (&[r#"{"prompt_tokens":10,"completion_tokens":4}"#], [0; 6]),
            (&[r#"{"input_tokens":-1,"output_tokens":"4"}"#], [0; 6]),
            (&["{}"], [0; 6]),
            (&["null"], [0; 6]),
            (&["[1]"], [0; 6]),
        ],
    );
}

#[test]
fn a_cost_that_the_server_reports_is_read() {
    let dollars = |kind, usage: &str| self::usage(kind, &[usage]).cost;
    let chat = r#""usage":{"prompt_tokens":10,"completion_tokens":4,"cost":0.5}"#;
    let responses = r#"{"input_tokens":10,"output_tokens":4,"cost":0.5}"#;
    assert_eq!(dollars(ProviderKind::OpenAiChat, chat), Cost::from_dollars(0.5));
    assert_eq!(
        dollars(ProviderKind::OpenAiResponses, responses),
        Cost::from_dollars(0.5)
    );
}
