//! Plays lists of random steps on a store, and finds the shortest list that goes wrong.

use std::fmt::Debug;
use std::ops::Range;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use test_support::databases::Engine;

use super::fixtures::Fixture;

/// Plays a number of lists of such lengths, one after another on the same store; skipped if there
/// is no server.
pub(super) fn check<S: Debug>(
    engine: Engine,
    cases: u32,
    step: impl Strategy<Value = S>,
    length: Range<usize>,
    play: &impl AsyncFn(&Fixture, &[S]),
) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let Some(fixture) = runtime.block_on(Fixture::new(engine)) else {
        return;
    };
    let mut runner = TestRunner::new(Config {
        cases,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..Config::default()
    });
    let result = runner.run(&prop::collection::vec(step, length), |steps| {
        runtime.block_on(play(&fixture, &steps));
        Ok(())
    });
    result.unwrap();
}
