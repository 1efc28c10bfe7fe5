//! A run that ends while its files are written for a command: the call ends at once, and leaves
//! nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use test_support::wait::until;
use tokio::time::timeout;
use values::clock::{Clock, Deadline, SystemClock};
use values::session::{EnvironmentState, Hash};
use values::tenant::TenantId;
use workspace::environment::Environment;
use workspace::{Content, ContentKind, Contents, ContentsError, InMemoryContents, StoredContent, WorkspaceLimits};

use super::Desk;
use super::shell::Host;
use crate::support::text::assert_contains;

/// More than are written at a time.
const FILES: usize = 1_000;

/// Contents that never load the files of a tree but for the first ones.
#[derive(Debug)]
struct Stuck {
    contents: Arc<InMemoryContents>,
    loads: AtomicUsize,
}

#[async_trait]
impl Contents for Stuck {
    fn tenant(&self) -> &TenantId {
        self.contents.tenant()
    }

    async fn load(&self, hashes: &[Hash]) -> Result<Vec<Content>, ContentsError> {
        let loaded = self.contents.load(hashes).await?;
        let has_files = loaded.iter().any(|content| content.kind == ContentKind::Bytes);
        if has_files && self.loads.fetch_add(1, Ordering::SeqCst) > 0 {
            std::future::pending::<()>().await;
        }
        Ok(loaded)
    }

    async fn store(&self, contents: Vec<Content>) -> Result<(), ContentsError> {
        self.contents.store(contents).await
    }

    async fn renew(&self, hashes: &[Hash]) -> Result<HashMap<Hash, StoredContent>, ContentsError> {
        self.contents.renew(hashes).await
    }
}

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Cancelled,
    OutOfTime,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_ends_while_its_files_are_written_waits_for_no_more_of_them() {
    let contents = Arc::new(InMemoryContents::default());
    let maker = Host::with(|settings| settings.retained_directories = 0);
    let restore = |contents: Arc<dyn Contents>, state| {
        let environment = Environment::restore(state, contents, WorkspaceLimits::default());
        Arc::new(environment)
    };
    let desk = Desk {
        environment: restore(Arc::clone(&contents) as _, EnvironmentState::default()),
        ..maker.desk()
    };
    desk.sh(&format!("for i in $(seq {FILES}); do echo $i > $i; done"))
        .await;
    let state = desk.environment.export().await.unwrap();
    for is_background in [false, true] {
        for end in [End::Cancelled, End::OutOfTime] {
            let host = Host::new();
            let stuck = Arc::new(Stuck {
                contents: Arc::clone(&contents),
                loads: AtomicUsize::default(),
            });
            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
            let deadline = clock.now() + chrono::TimeDelta::seconds(2);
            let desk = Desk {
                environment: restore(Arc::clone(&stuck) as _, state.clone()),
                deadline: (end == End::OutOfTime).then(|| Deadline::new(deadline, clock)),
                ..host.desk()
            };
            let call = desk.call("shell", json!({"command": "echo > begun", "background": is_background}));
            let stop = async {
                if end == End::Cancelled {
                    let is_stuck = async || stuck.loads.load(Ordering::SeqCst) > 1;
                    until("no file is written", is_stuck).await;
                    desk.cancellation.cancel();
                }
            };
            let both = async { tokio::join!(call, stop) };
            let (said, ()) = timeout(Duration::from_mins(1), both).await.expect("the call ends");
            match (end, is_background) {
                (End::Cancelled, _) => assert_contains!(said.unwrap_err(), "the run was cancelled or stopped"),
                (End::OutOfTime, false) => assert_contains!(said.unwrap(), "killed"),
                (End::OutOfTime, true) => assert_contains!(said.unwrap_err(), "the time of the run is spent"),
            }
            assert!(!host.has_begun());
            until("the directory stays", async || host.directories().is_empty()).await;
            assert_eq!(desk.environment.export().await.unwrap().workspace, state.workspace);
        }
    }
}
