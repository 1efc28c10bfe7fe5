//! Rates of requests: replicas that share a server count together, and a board of one process
//! counts nothing.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use board::Board;
use values::limits::RequestRate;

use crate::{close, new_tenant, replicas};

fn rate(per_second: u32, burst: u32) -> RequestRate {
    RequestRate {
        per_second: NonZeroU32::new(per_second).unwrap(),
        burst: NonZeroU32::new(burst).unwrap(),
    }
}

#[tokio::test]
async fn replicas_count_the_requests_of_a_tenant_together() {
    let Some((here, there, tenant)) = replicas().await else {
        return;
    };
    let rate = rate(1, 4);
    let begun = Instant::now();
    let first = here.rate_take(&tenant, rate).await.unwrap();
    assert_eq!((first.rate, first.remaining, first.wait), (rate, 3, None));
    let mut allowed = 1;
    let wait = loop {
        let board = if allowed % 2 == 0 { &here } else { &there };
        let standing = board.rate_take(&tenant, rate).await.unwrap();
        match standing.wait {
            None => allowed += 1,
            Some(wait) => break wait,
        }
    };
    assert!(allowed <= 4 + begun.elapsed().as_secs() + 1, "{allowed}");
    assert!(allowed >= 4 && wait <= Duration::from_secs(1), "{allowed} {wait:?}");
    let other = there.rate_take(&new_tenant(), rate).await.unwrap();
    assert_eq!(other.wait, None);
    // As much time later the next is allowed: nothing else was counted.
    tokio::time::sleep(wait + Duration::from_millis(5)).await;
    assert_eq!(there.rate_take(&tenant, rate).await.unwrap().wait, None);
    close([&here, &there]).await;
}

#[tokio::test]
async fn a_board_of_one_process_counts_nothing() {
    let board = Board::default();
    assert_eq!(board.rate_take(&new_tenant(), rate(1, 1)).await, None);
}
