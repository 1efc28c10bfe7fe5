//! The sender by itself: what goes over the wire, and where it does not go.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};
use bytes::Bytes;
use tools::webhooks::{Delivery, Endpoint, SendError, SenderSettings, SigningKeys, WebhookSender};
use values::clock::Timestamp;

use crate::support::webhook_receiver::{Reaction, WebhookReceiver};

fn local() -> SenderSettings {
    SenderSettings {
        allow_private_addresses: true,
        allow_http: true,
        max_response_bytes: 1024,
        ..SenderSettings::default()
    }
}

async fn send(sender: &WebhookSender, endpoint: &Endpoint, timeout: Option<Duration>) -> Result<u16, SendError> {
    let timestamp: Timestamp = "2021-02-25T15:02:10Z".parse().unwrap();
    let keys = SigningKeys::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let (body, headers) = (
        Bytes::from_static(br#"{"test": 2432232314}"#),
        HeaderMap::from_iter([("x-team".parse().unwrap(), HeaderValue::from_static("agents"))]),
    );
    let delivery = Delivery {
        endpoint,
        id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp,
        body: &body,
        keys: Some(&keys),
        headers: Some(&headers),
        trace: None,
        timeout,
    };
    sender.send(&delivery).await.map(|delivered| delivered.status)
}

#[tokio::test]
async fn the_message_of_the_published_test_vector_goes_over_the_wire_as_published() {
    let receiver = WebhookReceiver::content().await;
    let sender = WebhookSender::new(local()).unwrap();
    let endpoint = sender.endpoint(&receiver.url("/a?b=c")).unwrap();
    assert_eq!(send(&sender, &endpoint, None).await.unwrap(), 204);
    let [message] = &receiver.received()[..] else {
        panic!("{:?}", receiver.received())
    };
    assert_eq!(
        (message.path.as_str(), &message.raw[..]),
        ("/a", &br#"{"test": 2432232314}"#[..])
    );
    for (name, value) in [
        ("content-type", "application/json"),
        ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
        ("webhook-timestamp", "1614265330"),
        ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        ("x-team", "agents"),
    ] {
        assert_eq!(message.header(name), value, "{name}");
    }
    assert!(message.header("user-agent").starts_with("agent-runtime/"));
    assert!(!message.headers.contains_key("accept-encoding"));
}

#[tokio::test]
async fn a_redirect_is_refused_wherever_it_leads() {
    let elsewhere = WebhookReceiver::content().await;
    for to in [
        "http://169.254.169.254/latest",
        "http://localhost:1/",
        &elsewhere.url("/"),
        "/again",
    ] {
        let location = to.to_owned();
        let receiver = WebhookReceiver::start(move |_| Reaction::Redirect(location.clone())).await;
        let sender = WebhookSender::new(local()).unwrap();
        let endpoint = sender.endpoint(&receiver.url("/")).unwrap();
        let error = send(&sender, &endpoint, None).await.unwrap_err();
        assert!(matches!(error, SendError::Redirect { status: 307 }), "{to}: {error}");
        assert_eq!(receiver.received().len(), 1, "{to}");
    }
    assert!(elsewhere.received().is_empty());
}

#[tokio::test]
async fn a_name_that_resolves_to_this_machine_is_refused_unless_it_is_allowed() {
    let receiver = WebhookReceiver::content().await;
    let url = format!("http://localhost:{}/", receiver.port());
    for (allow_private_addresses, expected) in [(false, None), (true, Some(204))] {
        let sender = WebhookSender::new(SenderSettings {
            allow_private_addresses,
            ..local()
        });
        let sender = sender.unwrap();
        let endpoint = sender.endpoint(&url).unwrap();
        match (send(&sender, &endpoint, None).await, expected) {
            (Err(SendError::NotPublic), None) => assert!(receiver.received().is_empty()),
            (sent, expected) => assert_eq!(sent.ok(), expected),
        }
    }
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test]
async fn a_timeout_is_never_longer_than_the_sender_allows() {
    let receiver = WebhookReceiver::start(|_| Reaction::Hang).await;
    let tight = SenderSettings {
        timeout: Duration::from_millis(50),
        ..local()
    };
    for (settings, asked) in [
        (tight, None),
        (tight, Some(Duration::from_hours(1))),
        (local(), Some(Duration::from_millis(50))),
    ] {
        let sender = WebhookSender::new(settings).unwrap();
        let endpoint = sender.endpoint(&receiver.url("/")).unwrap();
        let error = send(&sender, &endpoint, asked).await.unwrap_err();
        assert!(matches!(error, SendError::Timeout), "{error}");
    }
}

#[tokio::test]
async fn a_response_is_read_up_to_its_limit() {
    for (size, is_read) in [(1024, true), (1025, false)] {
        let receiver = WebhookReceiver::start(move |_| Reaction::Status(200, "x".repeat(size))).await;
        let sender = WebhookSender::new(local()).unwrap();
        let endpoint = sender.endpoint(&receiver.url("/")).unwrap();
        match send(&sender, &endpoint, None).await {
            Ok(status) => assert!(is_read && status == 200),
            Err(error) => assert!(
                !is_read && matches!(error, SendError::TooLarge { max: 1024 }),
                "{error}"
            ),
        }
    }
}
