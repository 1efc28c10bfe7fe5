//! The decoders of providers' streams, on what a provider really sent.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput};
use models::{CapSettings, ProviderKind, ProviderSettings, SseDecoder};
use values::ids::UuidV7Source;
use values::json::Value;

const RECORDING: &str = include_str!("../../tests/recordings/openrouter_streaming_reasoning.json");
/// The usual bytes of a TCP segment.
const CHUNK: usize = 1400;

pub(crate) fn benches(criterion: &mut Criterion) {
    let recording: Value = serde_json::from_str(RECORDING).unwrap();
    let body = recording["exchanges"][0]["response"]["body"]
        .as_str()
        .unwrap()
        .as_bytes();
    let caps = CapSettings::default();
    let settings = ProviderSettings {
        base_url: Some("https://openrouter.ai/api/v1".to_owned()),
        ..ProviderSettings::new("openrouter", ProviderKind::OpenAiChat)
    };
    let wire = models::wire(&settings).unwrap().unwrap();
    let mut group = criterion.benchmark_group("decoders");
    group.throughput(Throughput::Bytes(body.len() as u64));
    group.bench_function("server-sent events", |bencher| {
        bencher.iter(|| {
            let mut decoder = SseDecoder::new(caps.event_bytes);
            let mut bytes = 0;
            for mut chunk in black_box(body).chunks(CHUNK) {
                while let Some(event) = decoder.next(&mut chunk).unwrap() {
                    bytes += event.data.len();
                }
            }
            bytes
        });
    });
    group.bench_function("chat completions", |bencher| {
        bencher.iter(|| {
            let mut decoder = wire.decoder(Some("text/event-stream"), caps, Arc::new(UuidV7Source));
            let mut events = Vec::new();
            for chunk in black_box(body).chunks(CHUNK) {
                decoder.push(chunk, &mut events).unwrap();
            }
            decoder.finish(&mut events).unwrap();
            events
        });
    });
    group.finish();
}
