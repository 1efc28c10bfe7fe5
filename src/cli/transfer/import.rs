//! `sessions import`. Checks every hash before it writes. Stored sessions are skipped, so an import
//! can be repeated.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};

use super::lines::Lines;
use super::{Counts, Line, PortableRun, VERSION};
use crate::app::{self, Extensions};
use crate::cli::output::print_note;
use crate::cli::progress::Progress;
use crate::cli::source::TenantStoreArgs;
use crate::config::Config;
use crate::run::agents::AgentDirectory;
use crate::run::files::open_tree;
use store::Store;
use store::portable::PortableSession;
use store::runs::RunEnd;
use store::sessions::{Commit, ConflictPolicy};
use values::ids::{BranchId, SessionId, UuidV7Source};
use values::session::Bundle;
use values::tenant::TenantId;
use workspace::{Content, WorkspaceLimits};

/// The most bytes of contents that are stored at once.
const MAX_BATCH: usize = 4 << 20;

/// The file to import.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ImportArgs {
    /// The file that `sessions export` has written, or `-` for standard input.
    file: PathBuf,
    #[command(flatten)]
    store: TenantStoreArgs,
}

/// Stores the sessions of a file, with their ids and hashes.
pub(in crate::cli) async fn import(args: ImportArgs, extensions: Extensions) -> anyhow::Result<()> {
    let ImportArgs { file, store } = args;
    store
        .with(async |config, store, tenant| {
            let (agents, _) = app::agent_directory(store, config, extensions)?;
            import_file(config, store, &agents, tenant, &file).await
        })
        .await
}

async fn import_file(
    config: &Config,
    store: &Arc<dyn Store>,
    agents: &AgentDirectory,
    tenant: &TenantId,
    file: &Path,
) -> anyhow::Result<()> {
    let (shown, opened) = if file == Path::new("-") {
        let opened = io::stdin().as_fd().try_clone_to_owned().map(File::from);
        ("standard input".to_owned(), opened)
    } else {
        (file.display().to_string(), File::open(file))
    };
    let opened = opened.with_context(|| format!("can't read {shown}"))?;
    let mut lines = Lines::new(opened, config.store.max_session_bytes)?;
    let Some(Line::AgentRuntimeSessions(header)) = lines.next().with_context(|| format!("can't read {shown}"))? else {
        bail!("{shown} is no export of sessions");
    };
    let version = header.version;
    ensure!(
        version <= VERSION,
        "{shown} has the version {version}: a newer agent-runtime wrote it"
    );
    let mut import = Import {
        store,
        agents,
        tenant,
        limits: config.workspace,
        run: None,
        batch: Vec::new(),
        batch_bytes: 0,
        last: None,
        counts: Counts::default(),
        new_sessions: 0,
        progress: Progress::begin(),
    };
    let counts = import
        .read(&mut lines)
        .await
        .with_context(|| format!("can't import {shown}"))?;
    let new = import.new_sessions;
    // The line of the progress makes room for the result.
    drop(import);
    print_note(format_args!("{} sessions, {new} of them new", counts.sessions))?;
    Ok(print_note(format_args!("the line ends at {}", header.session_id))?)
}

/// An import at work.
struct Import<'a> {
    store: &'a Arc<dyn Store>,
    agents: &'a AgentDirectory,
    tenant: &'a TenantId,
    limits: WorkspaceLimits,
    /// The run of the next session.
    run: Option<PortableRun>,
    /// Contents that are checked and not stored yet.
    batch: Vec<Content>,
    batch_bytes: usize,
    /// The session before.
    last: Option<Arc<Bundle>>,
    counts: Counts,
    new_sessions: u64,
    progress: Progress,
}

impl Import<'_> {
    /// Stores everything up to the last line.
    async fn read(&mut self, lines: &mut Lines) -> anyhow::Result<Counts> {
        while let Some(line) = lines.next()? {
            let Counts { sessions, contents, .. } = self.counts;
            let figures = || format!("{sessions} sessions, {contents} contents of files");
            self.progress.show(figures, lines.bytes);
            match line {
                Line::AgentRuntimeSessions(_) => bail!("the file has two first lines"),
                Line::Agent(agent) => {
                    self.counts.agents += 1;
                    agent.store(&**self.store, self.agents, self.tenant).await?;
                }
                Line::Run(run) => {
                    self.counts.runs += 1;
                    self.run = Some(*run);
                }
                Line::Content(content) => {
                    self.counts.contents += 1;
                    if content.is_list() {
                        self.store_batch().await?;
                    }
                    self.push(content.into_content(&**self.store, self.tenant).await?)
                        .await?;
                }
                Line::Session(session) => {
                    self.counts.sessions += 1;
                    self.store_batch().await?;
                    let session_id = session.session_id;
                    let added = self.add(*session).await;
                    added.with_context(|| format!("the session {session_id}"))?;
                }
                Line::End(counts) => {
                    ensure!(counts == self.counts, "parts of the file are missing");
                    return Ok(counts);
                }
            }
        }
        bail!("the file is cut: its last line is missing")
    }

    async fn push(&mut self, content: Content) -> anyhow::Result<()> {
        self.batch_bytes += content.bytes.len();
        self.batch.push(content);
        if self.batch_bytes >= MAX_BATCH {
            self.store_batch().await?;
        }
        Ok(())
    }

    async fn store_batch(&mut self) -> anyhow::Result<()> {
        self.batch_bytes = 0;
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() {
            return Ok(());
        }
        Ok(self.store.content_put(self.tenant, &batch).await?)
    }

    /// Stores a session unless it is stored already.
    async fn add(&mut self, session: PortableSession) -> anyhow::Result<()> {
        let (session_id, root_hash) = (session.session_id, session.root_hash);
        let run = self.run.take();
        if let Some(stored) = self.store.session_lookup(self.tenant, session_id).await? {
            ensure!(
                stored.root_hash == root_hash,
                "the store has another session with this id"
            );
            self.last = None;
            return Ok(());
        }
        let parent = match session.parent_session_id {
            Some(parent) => Some(self.parent(parent).await?),
            None => None,
        };
        let draft = session.into_draft(parent, BranchId::generate(&UuidV7Source))?;
        let tree = open_tree(self.store, self.tenant, &draft.environment, self.limits);
        tree.confirm().await?;
        let commit = Commit {
            tenant: self.tenant.clone(),
            draft,
            run: run.map(|PortableRun { record, steps }| RunEnd {
                is_metered: false,
                record,
                steps,
                lease: None,
                events: Vec::new(),
                applied: Vec::new(),
                deliveries: Vec::new(),
            }),
            thread: None,
            environment_from: None,
            conflict: ConflictPolicy::Fork,
            children: Vec::new(),
        };
        let committed = self.store.session_commit(&commit).await?;
        ensure!(
            committed.session.head.root_hash == root_hash,
            "the stored session has another hash"
        );
        self.last = Some(Arc::new(committed.session));
        self.new_sessions += 1;
        Ok(())
    }

    /// Returns the session that the next one continues.
    async fn parent(&self, parent: SessionId) -> anyhow::Result<Arc<Bundle>> {
        if let Some(last) = self.last.as_ref().filter(|last| last.head.session_id == parent) {
            return Ok(Arc::clone(last));
        }
        let bundle = self.store.bundle_load(self.tenant, parent).await?;
        let bundle = bundle.with_context(|| format!("the session {parent}, which it continues, is not stored"))?;
        Ok(Arc::new(bundle))
    }
}
