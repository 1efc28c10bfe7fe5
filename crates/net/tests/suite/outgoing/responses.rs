//! Hostile responses: floods, bombs, wrong lengths and silence.

use std::io::Write as _;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use net::outgoing::{OutgoingError, ReadBody, within};
use test_support::raw_server::{RawReply, RawServer, head};

use super::{local_client, send};

const MAX: usize = 64 << 10;

/// Gets the reply, with a limit of a second.
async fn read(reply: RawReply) -> Result<ReadBody, OutgoingError> {
    let server = RawServer::start(move |_| reply.clone()).await;
    let client = local_client();
    within(Duration::from_secs(2), async {
        send(&client, &server.url("/")).await?.read(MAX).await
    })
    .await
}

fn begun(headers: &[(&str, &str)]) -> RawReply {
    let mut bytes = head(200, headers);
    bytes.extend(b"\r\n");
    RawReply::bytes(bytes)
}

#[tokio::test]
async fn a_body_is_read_up_to_its_limit() {
    for (size, is_complete) in [(MAX, true), (MAX + 1, false)] {
        let body = read(RawReply::text(&"x".repeat(size))).await.unwrap();
        assert_eq!((body.bytes.len(), body.is_complete), (MAX, is_complete));
    }
}

#[tokio::test]
async fn an_endless_body_is_cut() {
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
    for reply in [
        begun(&[]).then_repeat("x".repeat(1000)),
        begun(&[("transfer-encoding", "chunked")]).then_repeat(chunk),
    ] {
        let body = read(reply).await.unwrap();
        assert_eq!((body.bytes.len(), body.is_complete), (MAX, false));
    }
}

#[tokio::test]
async fn a_bomb_is_cut_at_the_limit_of_decompressed_bytes() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..50 {
        encoder.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < MAX);
    let body = read(RawReply::new(200, &[("content-encoding", "gzip")], &bomb))
        .await
        .unwrap();
    assert_eq!((body.bytes.len(), body.is_complete), (MAX, false));
    assert!(body.bytes.iter().all(|byte| *byte == 0));
}

#[tokio::test]
async fn a_body_of_the_wrong_length_is_an_error() {
    let short = RawReply::bytes("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc");
    let error = read(short).await.unwrap_err();
    assert!(matches!(error, OutgoingError::Broken(_)), "{error:?}");

    // What comes after the declared length is not part of the body.
    let long = RawReply::bytes("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabcdef");
    assert_eq!(&read(long).await.unwrap().bytes[..], b"abc");

    for bad in [
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 6\r\n\r\nabcdef",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n",
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc",
        "SSH-2.0-OpenSSH_9.6\r\n",
        "",
    ] {
        let error = read(RawReply::bytes(bad)).await.unwrap_err();
        assert!(matches!(error, OutgoingError::Broken(_)), "{bad:?}: {error:?}");
        assert!(!error.to_string().contains("127.0.0.1"), "{error}");
    }
}

#[tokio::test]
async fn a_flood_of_headers_is_an_error() {
    let many: String = "x-many: y\r\n".repeat(200);
    let large = format!("x: {}\r\n", "y".repeat(1 << 20));
    let endless = RawReply::bytes("HTTP/1.1 200 OK\r\n").then_repeat("x-flood: yyyyyyyyyyyyyyyyyyyyyyyy\r\n");
    for reply in [
        RawReply::bytes(format!("HTTP/1.1 200 OK\r\n{many}\r\n")),
        RawReply::bytes(format!("HTTP/1.1 200 OK\r\n{large}\r\n")),
        endless,
    ] {
        let error = read(reply).await.unwrap_err();
        assert!(matches!(error, OutgoingError::Broken(_)), "{error:?}");
    }
}

#[tokio::test]
async fn silence_ends_at_the_timeout() {
    for reply in [
        RawReply::bytes("").then_hang(),
        RawReply::bytes("HTTP/1.1 200 OK\r\ncontent-le").then_hang(),
        begun(&[]).then_hang(),
        RawReply::bytes("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc").then_hang(),
        // Interim responses without end.
        RawReply::bytes("").then_repeat("HTTP/1.1 100 Continue\r\n\r\n"),
    ] {
        let error = read(reply.clone()).await.unwrap_err();
        assert!(matches!(error, OutgoingError::Timeout), "{reply:?}: {error:?}");
    }
}
