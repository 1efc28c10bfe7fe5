//! Directories for commands, and the start of a command, on a disk.
//!
//! Restoring is bounded by what the file system does for so many files, and a command by the start
//! of a process, so both are shown beside it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Bencher, BenchmarkId, Criterion};
use sandbox::{CommandSpec, Exit, Sandbox, SandboxSettings};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use values::path_patterns::PathPatterns;
use workspace::checkout::{Checkout, Checkouts};
use workspace::{FilePath, InMemoryContents, Tree, WorkspaceLimits};

const FILES: usize = 10_000;
const FILES_OF_A_DIRECTORY: usize = 100;
const FILE_BYTES: usize = 2_048;
/// How long the cleaning of a directory may take.
const CLEANING: Duration = Duration::from_millis(500);

pub(crate) fn benches(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    // /var/tmp is on a disk.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let settings = SandboxSettings {
        helper: env!("CARGO_BIN_EXE_agent-runtime").into(),
        ..SandboxSettings::default()
    };
    let sandbox = runtime.block_on(Sandbox::probe(settings, folder.path())).unwrap();
    let trees = runtime.block_on(Trees::make());
    checkouts(criterion, &runtime, folder.path(), &trees);
    starts(criterion, &runtime, folder.path(), &sandbox);
}

/// A tree of many files, and the same tree with one file changed.
struct Trees {
    tree: Tree,
    changed: Tree,
}

impl Trees {
    /// Prints what the change stores.
    #[expect(clippy::print_stdout, reason = "it is a figure, not a time")]
    async fn make() -> Self {
        let contents = Arc::new(InMemoryContents::new("bench".parse().unwrap()));
        let tree = tree(&contents).await;
        let all = contents.take_counts();
        let path = FilePath::parse("d042/f4242").unwrap();
        let changed = tree.with_file(&path, content(0).into(), true).await.unwrap();
        let changed = changed.save().await.unwrap();
        let one = contents.take_counts();
        println!(
            "workspace of {FILES} files of {FILE_BYTES} bytes: {} contents of {} bytes stored; one file changed: {} of {}",
            all.stored, all.stored_bytes, one.stored, one.stored_bytes
        );
        Self { tree, changed }
    }
}

fn checkouts(criterion: &mut Criterion, runtime: &Runtime, folder: &Path, trees: &Trees) {
    let Trees { tree, changed } = trees;
    let checkouts = Checkouts::open(&folder.join("checkouts"), 0).unwrap();
    let mut group = criterion.benchmark_group("checkout of 10000 files");
    group.sample_size(10);
    group.bench_function("plain writes of the same files", |bencher| {
        let mut number = 0;
        bencher.iter(|| {
            number += 1;
            write_plainly(&folder.join(format!("plain-{number}")));
        });
    });
    let mut held = Vec::new();
    group.bench_function("cold", |bencher| {
        take_and_hold(bencher, runtime, (&checkouts, tree), &mut held);
    });
    drop(held);
    let retaining = Checkouts::open(&folder.join("retained"), 1).unwrap();
    drop(runtime.block_on(take(&retaining, tree)));
    group.bench_function("retained", |bencher| {
        bencher.iter_custom(|rounds| {
            let mut spent = Duration::ZERO;
            for _ in 0..rounds {
                // The directory is cleaned in the background before it is retained.
                std::thread::sleep(CLEANING);
                let begun = Instant::now();
                let checkout = runtime.block_on(take(&retaining, tree));
                spent += begun.elapsed();
                drop(checkout);
            }
            spent
        });
    });
    let mut checkout = runtime.block_on(take(&checkouts, tree));
    group.bench_function("one file changed by a tool", |bencher| {
        bencher.iter_custom(|rounds| {
            runtime.block_on(async {
                let begun = Instant::now();
                for round in 0..rounds {
                    let next = if round % 2 == 0 { changed } else { tree };
                    checkout.update(next).await.unwrap();
                }
                begun.elapsed()
            })
        });
    });
    runtime.block_on(checkout.update(tree)).unwrap();
    let files = checkout.for_command().files;
    let changed = files.join("d042/f4242");
    for name in ["nothing", "one file"] {
        group.bench_function(BenchmarkId::new("scan after a command that changed", name), |bencher| {
            scan(
                bencher,
                runtime,
                &mut checkout,
                (name == "one file").then_some(changed.as_path()),
            );
        });
    }
    group.finish();
}

/// Takes directories and holds them. For some seconds ext4 does not reuse what was removed, so that
/// removals between the rounds would make them many times slower.
fn take_and_hold(
    bencher: &mut Bencher<'_>,
    runtime: &Runtime,
    (checkouts, tree): (&Checkouts, &Tree),
    held: &mut Vec<Checkout>,
) {
    bencher.iter_custom(|rounds| {
        let mut spent = Duration::ZERO;
        for _ in 0..rounds {
            let begun = Instant::now();
            let checkout = runtime.block_on(take(checkouts, tree));
            spent += begun.elapsed();
            held.push(checkout);
        }
        spent
    });
}

fn scan(bencher: &mut Bencher<'_>, runtime: &Runtime, checkout: &mut Checkout, changed: Option<&Path>) {
    bencher.iter_custom(|rounds| {
        let mut spent = Duration::ZERO;
        for round in 0..rounds {
            if let Some(changed) = changed {
                fs::write(changed, format!("round {round}")).unwrap();
            }
            let begun = Instant::now();
            runtime.block_on(checkout.scan(&PathPatterns::default())).unwrap();
            spent += begun.elapsed();
        }
        spent
    });
}

/// The command `true`, as a process of its own and in the sandbox.
fn starts(criterion: &mut Criterion, runtime: &Runtime, folder: &Path, sandbox: &Sandbox) {
    let (files, scratch) = (folder.join("files"), folder.join("scratch"));
    fs::create_dir(&files).unwrap();
    fs::create_dir(&scratch).unwrap();
    let mut group = criterion.benchmark_group("the command true");
    group.bench_function("bare process", |bencher| {
        bencher.to_async(runtime).iter(async || {
            let status = tokio::process::Command::new("/bin/true").status().await;
            assert!(status.unwrap().success());
        });
    });
    group.bench_function("in the sandbox", |bencher| {
        bencher.to_async(runtime).iter(async || {
            let spec = CommandSpec::new("/bin/true", &files, &scratch);
            let end = sandbox.run(spec, |_| (), CancellationToken::new()).await;
            assert_eq!(end.exit, Exit::Code(0));
        });
    });
    group.finish();
}

async fn take(checkouts: &Checkouts, tree: &Tree) -> Checkout {
    checkouts.take("bench", tree).await.unwrap()
}

fn content(number: usize) -> Vec<u8> {
    let mut content = format!("file {number}\n").into_bytes();
    content.resize(FILE_BYTES, b'.');
    content
}

fn directory(number: usize) -> String {
    format!("d{:03}", number / FILES_OF_A_DIRECTORY)
}

fn write_plainly(root: &Path) {
    for number in 0..FILES {
        let directory = root.join(directory(number));
        if number % FILES_OF_A_DIRECTORY == 0 {
            fs::create_dir_all(&directory).unwrap();
        }
        fs::write(directory.join(format!("f{number:04}")), content(number)).unwrap();
    }
}

async fn tree(contents: &Arc<InMemoryContents>) -> Tree {
    let mut tree = Tree::empty(Arc::<InMemoryContents>::clone(contents), WorkspaceLimits::default());
    for number in 0..FILES {
        let path = FilePath::parse(&format!("{}/f{number:04}", directory(number))).unwrap();
        tree = tree.with_file(&path, content(number).into(), false).await.unwrap();
    }
    tree.save().await.unwrap()
}
