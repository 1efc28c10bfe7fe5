//! Whole answers that can't be used: what they have used is told all the same, since it is paid
//! for.

use agent::ports::ModelEvent;
use models::CapSettings;
use serde_json::{Value, json};
use test_support::samples::ALL;

use super::support::{decode, decoded};

#[test]
fn a_rejected_completion_reports_its_usage() {
    let caps = CapSettings {
        tool_calls: 1,
        ..CapSettings::default()
    };
    let (name, none) = (json!("t"), Value::Null);
    for samples in ALL {
        let (protocol, make) = (samples.name, samples.make);
        for (names, is_rejected) in [
            (vec![name.clone()], false),
            (vec![none.clone()], true),
            (vec![name.clone(), json!("u")], true),
        ] {
            let bytes = (samples.calls)(&names).to_string();
            let (events, end) = decode(make(Some("application/json"), caps), &[bytes.as_bytes()]);
            assert_eq!(end.is_err(), is_rejected, "{protocol}: {names:?}");
            let reported = events.iter().filter_map(|event| match event {
                ModelEvent::Usage(usage) => Some((usage.input_tokens, usage.output_tokens, usage.total_tokens)),
                _ => None,
            });
            assert_eq!(reported.collect::<Vec<_>>(), [(3, 2, 5)], "{protocol}: {names:?}");
        }
    }
}

#[test]
fn an_error_instead_of_a_completion_reports_usage() {
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5});
    let error = json!({"message": "no", "code": 502});
    for body in [
        json!({"error": error, "usage": usage}),
        json!({"choices": [{"index": 0, "error": error, "finish_reason": "error"}], "usage": usage}),
    ] {
        let (events, end) = decoded(0, Some("application/json"), &[body.to_string().as_bytes()]);
        assert!(end.is_err(), "{body}");
        assert!(
            matches!(&events[..], [ModelEvent::Usage(usage)] if usage.total_tokens == 5),
            "{body}: {events:?}"
        );
    }
}
