//! The stored form of segments: JSON, compressed where it pays.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput};
use store::codec::EncodedSegment;

use crate::fixtures::messages;

pub(crate) fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("codec");
    for number in [1, 100] {
        let messages = messages(number);
        let encoded = EncodedSegment::encode(&messages).unwrap();
        group.throughput(Throughput::Elements(number as u64));
        group.bench_function(BenchmarkId::new("encode", number), |bencher| {
            bencher.iter(|| EncodedSegment::encode(black_box(&messages)).unwrap());
        });
        group.bench_function(BenchmarkId::new("decode", number), |bencher| {
            bencher.iter(|| black_box(&encoded).decode().unwrap());
        });
    }
    group.finish();
}
