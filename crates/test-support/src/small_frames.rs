//! The smallest frames of Bedrock's streams that say something: of these an answer has the most.

use crate::bedrock_frames::frame;

/// Small frames of Bedrock's Converse: the kind of an event, and the event; `@` stands for the
/// number of the frame.
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
