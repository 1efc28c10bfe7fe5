//! The state that flows through the loop: what a copy and one more message cost at length.

use std::hint::black_box;
use std::sync::Arc;

use agent::state::{AgentContext, AgentState, MessageStore};
use criterion::{BatchSize, Criterion};
use values::clock::{Clock as _, SystemClock};
use values::ids::{AgentId, UuidV7Source};
use values::session::History;

use crate::fixtures::{message, messages};

const LENGTH: usize = 10_000;
const USUAL_LENGTH: usize = 1_000;

pub(crate) fn benches(criterion: &mut Criterion) {
    let history: History = messages(LENGTH).into_iter().collect();
    let now = SystemClock.now();
    let context = AgentContext {
        store: MessageStore::new(history.clone()),
        ..AgentContext::default()
    };
    let state = AgentState::new(AgentId::generate(&UuidV7Source), now).restored(now, now, 1, context);
    let added = message(LENGTH);
    let usual: History = messages(USUAL_LENGTH).into_iter().collect();
    let usual = AgentContext {
        store: MessageStore::new(usual),
        ..AgentContext::default()
    };
    let usual = AgentState::new(AgentId::generate(&UuidV7Source), now).restored(now, now, 1, usual);
    let mut group = criterion.benchmark_group("state");
    group.bench_function("state of 1000: clone", |bencher| {
        bencher.iter(|| black_box(&usual).clone());
    });
    group.bench_function("history of 10000: clone and push", |bencher| {
        bencher.iter(|| black_box(&history).clone().with_message(Arc::clone(&added)));
    });
    group.bench_function("state of 10000: clone and push", |bencher| {
        bencher.iter_batched(
            || (*added).clone(),
            |added| black_box(&state).clone().with_input([added], now),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}
