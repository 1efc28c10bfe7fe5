//! The decoder of server-sent events against another one, on random texts cut at random positions.

use futures_util::{FutureExt as _, StreamExt as _, stream};
use models::SseDecoder;
use proptest::prelude::*;

/// Decodes with the other decoder, and returns the name and the data of each event. It tells apart
/// what the standard does not: events without data are left out here.
fn other(chunks: &[Vec<u8>]) -> Vec<(String, String)> {
    let bytes = stream::iter(chunks.to_vec()).map(|chunk| Ok::<_, std::io::Error>(bytes::Bytes::from(chunk)));
    let events = sse_stream::SseStream::from_bytes_stream(bytes)
        .collect::<Vec<_>>()
        .now_or_never()
        .unwrap();
    let events = events.into_iter().map(Result::unwrap);
    events
        .filter_map(|event| Some((event.event.unwrap_or_default(), event.data?)))
        .collect()
}

fn ours(chunks: &[Vec<u8>]) -> Vec<(String, String)> {
    let mut decoder = SseDecoder::new(1 << 20);
    let mut events = Vec::new();
    for chunk in chunks {
        let mut bytes = chunk.as_slice();
        while let Some(event) = decoder.next(&mut bytes).unwrap() {
            events.push((event.name.into_owned(), event.data.into_owned()));
        }
    }
    events
}

fn event() -> impl Strategy<Value = String> {
    let newline = prop::sample::select(vec!["\n", "\r", "\r\n"]);
    let data = prop::collection::vec("[ a-z{}:€\u{1F600}]{0,12}", 0..4);
    let comment = prop::option::of("[ a-z:]{0,8}");
    let name = prop::option::of("[a-z ]{0,6}");
    (
        newline,
        data,
        comment,
        name,
        prop::option::of(any::<u32>()),
        prop::option::of("[a-z0-9]{0,4}"),
    )
        .prop_map(|(newline, data, comment, name, retry, id)| {
            let mut lines = Vec::new();
            lines.extend(comment.map(|comment| format!(":{comment}")));
            lines.extend(name.map(|name| format!("event: {name}")));
            lines.extend(data.iter().map(|data| format!("data:{data}")));
            lines.extend(id.map(|id| format!("id: {id}")));
            lines.extend(retry.map(|retry| format!("retry: {retry}")));
            lines.into_iter().map(|line| line + newline).collect::<String>() + newline
        })
}

fn chunked(text: &[u8], cuts: &[prop::sample::Index]) -> Vec<Vec<u8>> {
    let mut positions: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
    positions.extend([0, text.len()]);
    positions.sort_unstable();
    // The other decoder can't take empty chunks after a carriage return.
    positions.dedup();
    positions
        .windows(2)
        .map(|pair| text[pair[0]..pair[1]].to_vec())
        .collect()
}

proptest! {
    #[test]
    fn both_decoders_agree(
        events in prop::collection::vec(event(), 0..8),
        mark in any::<bool>(),
        rest in "(data: [a-z]{0,5})?",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let text = format!("{}{}{rest}", if mark { "\u{FEFF}" } else { "" }, events.concat());
        let chunks = chunked(text.as_bytes(), &cuts);
        prop_assert_eq!(ours(&chunks), other(&chunks));
    }
}

#[test]
fn a_large_event_in_small_chunks_takes_linear_time() {
    let text = format!("data: {}\n\n", "x".repeat(8 << 20));
    let start = std::time::Instant::now();
    let mut decoder = SseDecoder::new(9 << 20);
    let mut lengths = Vec::new();
    for mut chunk in text.as_bytes().chunks(100) {
        lengths.extend(decoder.next(&mut chunk).unwrap().map(|event| event.data.len()));
    }
    assert_eq!(lengths, [8 << 20]);
    // Quadratic work would take minutes here.
    assert!(start.elapsed() < std::time::Duration::from_mins(1));
}
