//! The responses of the mock provider in Anthropic Messages.

use serde_json::json;
use test_support::model_server::{self, Piece};
use values::json::Value;

use super::mock_model::Reply;

/// Puts a reply into the protocol's form.
pub(super) fn on_the_wire(reply: Reply, streams: bool) -> model_server::Reply {
    match reply {
        Reply::Status(status, body) => model_server::Reply::new(status, "application/json", body),
        Reply::Events(events) => event_stream(&events, None),
        Reply::Text(pieces) if streams => event_stream(&whole(&words(&pieces), "end_turn"), None),
        Reply::Slow(pieces, pause) => event_stream(&whole(&words(&pieces), "end_turn"), Some(&Piece::Wait(pause))),
        Reply::Held(gate, text) => event_stream(&whole(&words(&[text]), "end_turn"), None).after(Piece::Gate(gate)),
        Reply::After(pause, reply) => on_the_wire(*reply, streams).after(Piece::Wait(pause)),
        Reply::HeldAtEnd(gate, pieces) => {
            let mut reply = event_stream(&whole(&words(&pieces), "end_turn"), None);
            // Behind it are the ends of the block, of its message and of the stream.
            let end = reply.pieces.len() - 3;
            reply.pieces.insert(end, Piece::Gate(gate));
            reply
        }
        Reply::Cut(pieces) => event_stream(&words(&pieces), None),
        Reply::ToolCalls(calls) if streams => event_stream(&whole(&call_events(&calls), "tool_use"), None),
        Reply::Text(pieces) => plain(&json!([{"type": "text", "text": pieces.concat()}]), "end_turn"),
        Reply::ToolCalls(calls) => plain(&calls.iter().map(call_block).collect(), "tool_use"),
    }
}

/// Puts what begins and ends every stream around the events of its blocks.
fn whole(events: &[Value], reason: &str) -> Vec<Value> {
    let message = json!({"id": "mock", "model": "mock", "usage": {"input_tokens": 10, "output_tokens": 1}});
    let start = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "ping"}),
    ];
    let delta = json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}});
    [&start, events, &[delta, json!({"type": "message_stop"})]].concat()
}

fn words(pieces: &[String]) -> Vec<Value> {
    let start = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let deltas = pieces.iter().map(|piece| {
        let delta = json!({"type": "text_delta", "text": piece});
        json!({"type": "content_block_delta", "index": 0, "delta": delta})
    });
    let stop = json!({"type": "content_block_stop", "index": 0});
    std::iter::once(start).chain(deltas).chain([stop]).collect()
}

fn call_events(calls: &[(String, String, String)]) -> Vec<Value> {
    let events = calls.iter().enumerate().flat_map(|(index, (id, name, arguments))| {
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        let delta = json!({"type": "input_json_delta", "partial_json": arguments});
        [
            json!({"type": "content_block_start", "index": index, "content_block": block}),
            json!({"type": "content_block_delta", "index": index, "delta": delta}),
            json!({"type": "content_block_stop", "index": index}),
        ]
    });
    events.collect()
}

fn call_block((id, name, arguments): &(String, String, String)) -> Value {
    let input: Value = serde_json::from_str(arguments).unwrap_or_default();
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

fn plain(content: &Value, reason: &str) -> model_server::Reply {
    let usage = json!({"input_tokens": 10, "output_tokens": 5});
    let body = json!({"id": "mock", "type": "message", "model": "mock", "content": content, "stop_reason": reason, "usage": usage});
    model_server::Reply::json(200, &body)
}

/// Makes a stream of the events, with something before each.
fn event_stream(events: &[Value], before_each: Option<&Piece>) -> model_server::Reply {
    let pieces = events.iter().flat_map(|event| {
        let frame = format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap_or_default()
        );
        before_each.cloned().into_iter().chain([Piece::Bytes(frame.into())])
    });
    model_server::Reply {
        pieces: pieces.collect(),
        ..model_server::Reply::events("")
    }
}
