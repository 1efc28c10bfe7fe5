//! The smallest frames of each provider's streams that say something: of these an answer has the
//! most.

use crate::bedrock_frames::frame;

/// Small frames of each protocol, of which an answer has as many as it may, the last of several
/// ones again and again; `@` stands for the number of the frame.
pub fn small_frames(name: &str) -> &'static [&'static [&'static str]] {
    match name {
        "chat" => &[
            &[r#"{"choices":[{"delta":{"content":"x"}}]}"#],
            &[r#"{"choices":[{"delta":{"content":"x","reasoning":"y"}}]}"#],
            &[r#"{"choices":[{"delta":{"content":[{}]}}]}"#],
            &[r#"{"choices":[{"delta":{"refusal":"x","images":[{"image_url":{"url":"data:image/png;base64,"}}]}}]}"#],
            &[r#"{"choices":[{"delta":{"content":[{"type":"thinking","@":0}]}}]}"#],
            &[r#"{"choices":[{"delta":{"content":[{"type":"thinking","a":[{"":0},{"":0},{"":0}]}]}}]}"#],
            &[r#"{"choices":[{"delta":{"content":[{"type":"thinking"},{"type":"@"}]}}]}"#],
            &[r#"{"choices":[{"delta":{"reasoning_details":[{"type":"t","@":0}]}}]}"#],
            &[r#"{"choices":[{"delta":{"reasoning_details":[{"type":"t","a":[{"":0},{"":0},{"":0}]}]}}]}"#],
            &[r#"{"choices":[{"delta":{"reasoning_details":[{"type":"@"}]}}]}"#],
            &[r#"{"choices":[{"delta":{"@":0}}]}"#],
            &[r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"x"}}]}}]}"#],
            &[r#"{"choices":[{"delta":{"tool_calls":[{"index":@,"function":{"name":"f"}}]}}]}"#],
            &[r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"@":0}]}}]}"#],
            &[r#"{"choices":[{"delta":{"annotations":[0,0,0,0]}}]}"#],
            &[r#"{"choices":[{"delta":{"annotations":["@"]}}]}"#],
        ],
        "messages" => &[
            &[r#"{"type":"content_block_start","index":@,"content_block":{"type":"text","text":"x"}}"#],
            &[r#"{"type":"content_block_start","content_block":{"type":"x"}}"#],
            &[r#"{"type":"content_block_start","content_block":{"type":"thinking"}}"#],
            &[r#"{"type":"content_block_start","content_block":{"type":"tool_use","name":"f"}}"#],
            &[r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","citations":[0,0,0,0]}}"#],
            &[r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}"#],
            &[r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"x"}}"#],
            &[
                r#"{"type":"content_block_start","content_block":{"type":"text"}}"#,
                r#"{"type":"content_block_delta","delta":{"type":"citations_delta","citation":0}}"#,
            ],
            &[
                r#"{"type":"content_block_start","content_block":{"type":"x"}}"#,
                r#"{"type":"content_block_delta","delta":{"type":"x","@":0}}"#,
            ],
            &[
                r#"{"type":"content_block_start","content_block":{"type":"x"}}"#,
                r#"{"type":"content_block_delta","delta":{"type":"x","a":[{"":0},{"":0},{"":0}]}}"#,
            ],
        ],
        "gemini" => &[
            &[r#"{"candidates":[{"content":{"parts":[{"text":"x"}]}}]}"#],
            &[r#"{"candidates":[{"content":{"parts":[{"text":"x","thought":true},{"text":"x"}]}}]}"#],
            &[r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}"#],
            &[r#"{"candidates":[{"content":{"parts":[{"x":0}]}}]}"#],
            &[r#"{"candidates":[{"groundingMetadata":{"webSearchQueries":["@"]}}]}"#],
        ],
        "converse" => &[],
        _ => &[
            &[r#"{"type":"response.output_text.delta","item_id":"@","delta":"x"}"#],
            &[r#"{"type":"response.output_text.delta","item_id":"a","content_index":@,"delta":"x"}"#],
            &[r#"{"type":"response.output_text.delta","item_id":"a","delta":"x"}"#],
            &[r#"{"type":"response.reasoning_summary_text.delta","item_id":"a","summary_index":@,"delta":"x"}"#],
            &[r#"{"type":"response.output_item.added","item":{"type":"message","id":"@"}}"#],
            &[r#"{"type":"response.output_item.added","item":{"type":"x","id":"@"}}"#],
            &[r#"{"type":"response.output_item.done","item":{"type":"x","id":"@"}}"#],
            &[r#"{"type":"response.output_item.done","item":{"type":"x"}}"#],
            &[r#"{"type":"response.output_item.done","item":{"type":"function_call","name":"f"}}"#],
            &[r#"{"type":"response.output_item.done","output_index":@,"item":{"type":"message"}}"#],
            &[r#"{"type":"response.output_item.done","item":{"type":"message","content":[0,0,0,0,0,0,0,0]}}"#],
            &[
                r#"{"type":"response.output_item.added","item":{"type":"message","id":"a"}}"#,
                r#"{"type":"response.output_text.annotation.added","item_id":"a","content_index":@,"annotation":0}"#,
            ],
            &[
                r#"{"type":"response.output_item.added","item":{"type":"message","id":"a"}}"#,
                r#"{"type":"response.content_part.done","item_id":"a","content_index":@,"part":{"type":"output_text"}}"#,
            ],
        ],
    }
}

/// The same of Bedrock's Converse: the kind of an event, and the event.
pub const SMALL_FRAMES_OF_AWS: [(&str, &str); 7] = [
    ("contentBlockDelta", r#"{"contentBlockIndex":@,"delta":{"text":"x"}}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"x"}}"#),
    ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"x":{"@":0}}}"#),
    (
        "contentBlockDelta",
        r#"{"contentBlockIndex":0,"delta":{"x":[{"":0},{"":0},{"":0}]}}"#,
    ),
    (
        "contentBlockDelta",
        r#"{"contentBlockIndex":0,"delta":{"citation":{}}}"#,
    ),
    ("contentBlockStart", r#"{"contentBlockIndex":@,"start":{"x":{}}}"#),
    (
        "contentBlockStart",
        r#"{"contentBlockIndex":@,"start":{"toolUse":{"name":"f"}}}"#,
    ),
];

/// Frames an event as AWS does.
pub fn of_aws(event: &str, payload: &str) -> Vec<u8> {
    frame(&[(":message-type", "event"), (":event-type", event)], payload)
}
