//! The arguments of open calls, as the model wrote them.

use agent::record::RunRecord;
use values::json::Value;
use values::session::{OpenCall, hash_arguments};

/// Returns the arguments of an open call as text: that of the model, unless a hook changed them.
///
/// Providers cache the beginning of a conversation by its bytes, so a client that sends the call
/// back needs the same ones.
pub(in crate::http) fn arguments_text(record: &RunRecord, open: &OpenCall) -> String {
    let mut calls = record.output.iter().flat_map(|message| message.tool_calls());
    let written = calls.find(|call| call.id == open.call_id);
    let is_same = |text: &&str| {
        let read = serde_json::from_str::<Value>(text);
        read.is_ok_and(|arguments| hash_arguments(&arguments) == open.arguments_hash)
    };
    let text = written.map(|call| call.arguments.as_str()).filter(is_same);
    text.map_or_else(|| open.arguments.to_string(), str::to_owned)
}
