//! Sweeps of contents while sessions with files are committed and removed: each session that is
//! retained has all of its files, and nothing else is left.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use chrono::TimeDelta;
use futures_util::future::join_all;
use store::CommitError;
use store::sessions::VerifyFault;
use test_support::drafts::{now, requester};
use test_support::workspaces::{below, directory, entry, environment_of, file};
use values::session::{Bundle, Hash};
use workspace::Content;

use super::KEEP_ALL;
use crate::fixtures::Fixture;
use crate::sql::contents::{hash_literal, minutes_ago};

on_both_engines!(sweeps_take_no_file_from_a_session);

const COMMITTERS: usize = 4;
const COMMITS: usize = 30;

/// Files in two directories: the number of the file, and what is in it.
type Model = BTreeMap<usize, usize>;

/// Returns the contents of a model: root, directories, files.
fn contents_of(model: &Model) -> Vec<Content> {
    let mut all = Vec::new();
    let directories = [0, 1].map(|which| {
        let files: Vec<_> = model.iter().filter(|(number, _)| *number % 2 == which).collect();
        let files = files
            .into_iter()
            .map(|(number, text)| (format!("{number:02}"), file(format!("text {text}"))));
        let files: Vec<_> = files.collect();
        let entries: Vec<_> = files.iter().map(|(name, file)| (name.as_str(), entry(file))).collect();
        let directory = directory(&entries);
        all.extend(files.into_iter().map(|(_, file)| file));
        all.push(directory.clone());
        directory
    });
    let [even, odd] = directories.map(|directory| below(&directory));
    all.push(directory(&[("even", even), ("odd", odd)]));
    all.reverse();
    all
}

struct Race {
    fixture: Fixture,
    published: Mutex<Vec<(Arc<Bundle>, Model)>>,
    /// The contents that commits in flight have written, and by how many of them each.
    in_flight: tokio::sync::Mutex<HashMap<Hash, usize>>,
    swept: AtomicU64,
    sweeps: AtomicU64,
    refused: AtomicU64,
    is_over: AtomicBool,
}

impl Race {
    fn any(&self, choice: usize) -> Option<(Arc<Bundle>, Model)> {
        let published = self.published.lock().unwrap();
        let recent = published.len().min(6);
        (recent > 0).then(|| published[published.len() - 1 - choice % recent].clone())
    }

    async fn commit(&self, committer: usize) {
        for number in 0..COMMITS {
            let choice = number * 7_919 + committer * 104_729;
            let base = self.any(choice).filter(|_| number % 3 != 0);
            // Few trees, so that what was removed is soon written again.
            let mut model = match &base {
                Some((_, model)) => model.clone(),
                None => (0..4).map(|file| (file, choice >> file & 1)).collect(),
            };
            let known: BTreeSet<Hash> = match &base {
                Some((_, model)) => contents_of(model).iter().map(|content| content.hash).collect(),
                None => BTreeSet::new(),
            };
            model.insert(choice % 5, choice % 3);
            let root = contents_of(&model)[0].hash;
            let new: Vec<Content> = contents_of(&model)
                .into_iter()
                .filter(|new| !known.contains(&new.hash))
                .collect();
            self.begin(&new).await;
            self.write(&new, number % 4 == 1).await;
            if number % 2 == 0 {
                self.until_swept().await;
            }
            if number % 5 != 0 {
                self.publish(base.as_ref().map(|(bundle, _)| bundle), root, model).await;
            }
            self.end(&new).await;
        }
    }

    /// Writes contents; either all of them, or those that are missing.
    async fn write(&self, contents: &[Content], all: bool) {
        if all {
            return self.fixture.put(contents).await;
        }
        let hashes: Vec<Hash> = contents.iter().map(|content| content.hash).collect();
        let missing = self
            .fixture
            .store
            .content_missing(&self.fixture.tenant, &hashes)
            .await
            .unwrap();
        let missing: Vec<Content> = contents
            .iter()
            .filter(|new| missing.contains(&new.hash))
            .cloned()
            .collect();
        self.fixture.put(&missing).await;
    }

    /// Waits until sweeps have begun and ended, as during a long run.
    async fn until_swept(&self) {
        let before = self.sweeps.load(Ordering::SeqCst);
        while self.sweeps.load(Ordering::SeqCst) < before + 6 {
            tokio::task::yield_now().await;
        }
    }

    async fn publish(&self, base: Option<&Arc<Bundle>>, root: Hash, model: Model) {
        let mut commit = self.fixture.commit(base, &["work"]);
        commit.draft.environment = environment_of(root, "a").into();
        match self.fixture.store.session_commit(&commit).await {
            Ok(committed) => {
                let bundle = Arc::new(committed.session);
                self.check(&bundle).await;
                self.published.lock().unwrap().push((bundle, model));
            }
            Err(CommitError::MissingBase) => drop(self.refused.fetch_add(1, Ordering::SeqCst)),
            Err(error) => panic!("{error:?}"),
        }
    }

    /// Checks that a session has its files, unless it is removed meanwhile.
    async fn check(&self, bundle: &Bundle) {
        let (store, tenant, id) = (&self.fixture.store, &self.fixture.tenant, bundle.head.session_id);
        let Some(report) = store.session_verify(tenant, id).await.unwrap() else {
            return;
        };
        if store.session_lookup(tenant, id).await.unwrap().is_some() {
            let faults = report.faults.iter().filter(|fault| fault.session_id == id);
            assert_eq!(faults.collect::<Vec<_>>(), Vec::<&VerifyFault>::new());
        }
    }

    async fn begin(&self, contents: &[Content]) {
        let mut in_flight = self.in_flight.lock().await;
        for content in contents {
            *in_flight.entry(content.hash).or_default() += 1;
        }
    }

    /// Ends a commit. Its contents look old from then on, unless another commit has written them.
    async fn end(&self, contents: &[Content]) {
        let mut in_flight = self.in_flight.lock().await;
        let mut old = Vec::new();
        for content in contents {
            let users = in_flight.get_mut(&content.hash).unwrap();
            *users -= 1;
            if *users == 0 {
                old.push(hash_literal(&self.fixture, content.hash));
            }
        }
        if !old.is_empty() {
            let (time, old) = (minutes_ago(&self.fixture, 180), old.join(", "));
            let update = format!("update contents set written_at = {time} where hash in ({old})");
            self.fixture.execute(&update).await;
        }
    }

    async fn sweep(&self) {
        while !self.is_over.load(Ordering::SeqCst) {
            let time = minutes_ago(&self.fixture, 180);
            let due = format!("update content_sweeps set swept_at = {time}");
            self.fixture.execute(&due).await;
            match self.fixture.try_sweep(KEEP_ALL, now(), 20).await {
                Ok(figures) => {
                    self.swept.fetch_add(figures.contents, Ordering::SeqCst);
                    self.sweeps.fetch_add(1, Ordering::SeqCst);
                }
                Err(error) if error.is_transient() => tokio::task::yield_now().await,
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    async fn remove(&self) {
        for choice in 0.. {
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            if let Some((bundle, _)) = self.any(choice * 31) {
                let (store, id) = (&self.fixture.store, bundle.head.session_id);
                match store
                    .session_remove(&self.fixture.tenant, id, choice % 2 == 0, &requester())
                    .await
                {
                    Err(error) if !error.is_transient() => panic!("{error:?}"),
                    _ => tokio::task::yield_now().await,
                }
            }
            tokio::task::yield_now().await;
        }
    }
}

async fn sweeps_take_no_file_from_a_session(fixture: Fixture) {
    let race = Race {
        fixture,
        published: Mutex::default(),
        in_flight: tokio::sync::Mutex::default(),
        swept: AtomicU64::new(0),
        sweeps: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
    };
    let committing = async {
        join_all((0..COMMITTERS).map(|committer| race.commit(committer))).await;
        race.is_over.store(true, Ordering::SeqCst);
    };
    tokio::join!(committing, race.sweep(), race.sweep(), race.remove());
    assert!(
        race.swept.load(Ordering::SeqCst) > 0,
        "nothing was swept during the race"
    );

    let fixture = &race.fixture;
    fixture.sweep(KEEP_ALL, now() + TimeDelta::hours(5), 100).await;
    let mut needed = BTreeSet::new();
    let published = std::mem::take(&mut *race.published.lock().unwrap());
    for (bundle, model) in published {
        let report = fixture
            .store
            .session_verify(&fixture.tenant, bundle.head.session_id)
            .await;
        if let Some(report) = report.unwrap() {
            assert_eq!(report.faults, []);
            needed.extend(contents_of(&model).iter().map(|content| content.hash));
        }
    }
    assert_eq!(fixture.count("contents").await, i64::try_from(needed.len()).unwrap());
}
