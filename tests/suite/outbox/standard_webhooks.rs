//! Deliveries as the official library of Standard Webhooks reads them, in Python.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::json;
use test_support::languages::python;
use values::clock::{Clock as _, SystemClock};
use values::json::Value;

use super::setup::{LOCAL_SENDER, Outbox};
use crate::support::webhook_receiver::{Received, WebhookReceiver};

const OLD: &str = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
pub(crate) const NEW: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// Has the library check messages; `None` when it is not there and not required.
pub(crate) fn verify(messages: &[Value]) -> Option<Vec<String>> {
    let python = python()?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/outbox/verify.py");
    let mut child = Command::new(python)
        .arg(script)
        .env("PYTHONIOENCODING", "utf-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for message in messages {
        writeln!(input, "{message}").unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the verifier failed");
    let answers = String::from_utf8(output.stdout).unwrap();
    Some(answers.lines().map(str::to_owned).collect())
}

/// A message as the library takes it.
pub(crate) fn given(message: &Received, secret: &str) -> Value {
    let headers = message
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), json!(value.to_str().unwrap())));
    let body = String::from_utf8(message.raw.clone()).unwrap();
    json!({"secret": secret, "headers": headers.collect::<serde_json::Map<_, _>>(), "body": body})
}

/// Sends a message by a worker and returns it as it came.
async fn delivered(secrets: Option<&str>) -> Received {
    let receiver = WebhookReceiver::content().await;
    let outbox = Outbox::open().await;
    let outbox = match secrets {
        Some(secrets) => outbox.with_secret("main", secrets),
        None => outbox,
    };
    let name = secrets.map(|_| "main");
    let id = outbox.write_signed(&receiver.url("/"), name, SystemClock.now()).await;
    let _worker = outbox.work_by(LOCAL_SENDER, Arc::new(SystemClock));
    outbox.until_attempted(id, 1).await;
    receiver.received().remove(0)
}

#[tokio::test]
async fn the_official_library_verifies_deliveries_and_refuses_all_else() {
    let one = delivered(Some(NEW)).await;
    let both = delivered(Some(&format!("{NEW}\n{OLD}"))).await;
    let unsigned = delivered(None).await;
    let changed = |path: &[&str], value: &str| {
        let mut message = given(&one, NEW);
        let position = path.iter().fold(&mut message, |position, key| &mut position[*key]);
        *position = json!(value);
        message
    };
    let body = String::from_utf8(one.raw.clone()).unwrap();
    let old = (SystemClock.now().timestamp() - 3_600).to_string();
    let no_match = "WebhookVerificationError: No matching signature found";
    let cases = [
        (given(&one, NEW), "verified"),
        // While secrets are exchanged, receivers with the new and with the old one both understand.
        (given(&both, NEW), "verified"),
        (given(&both, OLD), "verified"),
        (given(&both, OTHER), no_match),
        (given(&one, OLD), no_match),
        (changed(&["body"], &body.replace("Zürich", "Zurich")), no_match),
        (changed(&["body"], &format!("{body} ")), no_match),
        (changed(&["headers", "webhook-id"], "another"), no_match),
        (
            changed(&["headers", "webhook-timestamp"], &old),
            "WebhookVerificationError: Message timestamp too old",
        ),
        (
            given(&unsigned, NEW),
            "WebhookVerificationError: Missing required headers",
        ),
    ];
    let messages: Vec<_> = cases.iter().map(|(message, _)| message.clone()).collect();
    let Some(answers) = verify(&messages) else { return };
    let expected: Vec<_> = cases.iter().map(|(_, expected)| *expected).collect();
    assert_eq!(answers, expected);
}
