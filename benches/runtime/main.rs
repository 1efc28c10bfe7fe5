//! Benchmarks of the parts, and of a whole run with the scripted model:
//!
//!     scripts/with-servers cargo bench --profile dist
//!     cargo bench --profile dist -- codec
//!
//! Times here are of one thread that waits for each operation. What the service carries under load,
//! `examples/load` measures.

#![expect(clippy::unwrap_used, reason = "a benchmark that can't go on has nothing to measure")]

mod agent_loop;
mod codec;
mod commands;
mod decoders;
mod fixtures;
mod requests;
mod runs;
mod state;
mod stores;

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};

fn short() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .without_plots()
        .configure_from_args()
}

criterion_group! {
    name = runtime;
    config = short();
    targets = codec::benches, state::benches, requests::benches, agent_loop::benches, decoders::benches, runs::benches, stores::benches,
        commands::benches
}
criterion_main!(runtime);
