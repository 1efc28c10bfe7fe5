//! `sessions export`.

use std::collections::HashSet;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use zstd::Encoder;

use super::agent::agents_of;
use super::output::{Counted, Output};
use super::{Counts, Header, Line, PortableRun, VERSION};
use crate::app::{self, Extensions};
use crate::cli::absent::absent;
use crate::cli::output::print_note;
use crate::cli::progress::Progress;
use crate::cli::source::TenantStoreArgs;
use crate::run::agents::AgentDirectory;
use agent::record::RunRecord;
use store::portable::PortableSession;
use store::retention::Ancestor;
use store::sessions::SessionFilter;
use store::{Page, Store};
use values::ids::{RunId, SessionId};
use values::session::{Hash, SessionHead};
use values::tenant::TenantId;
use workspace::{Content, ContentKind, content_links};

/// The level of compression.
const LEVEL: i32 = 6;
/// How many sessions of the line are listed at once.
const PAGE: u32 = 200;
/// How many contents are read at once.
const BATCH: usize = 32;

/// The line to export, and its file.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ExportArgs {
    /// The last session of the line. Its ancestors are exported with it.
    session_id: SessionId,
    /// The file to write, or `-` for standard output. An existing file is replaced.
    #[arg(long, short)]
    output: PathBuf,
    #[command(flatten)]
    store: TenantStoreArgs,
}

/// Writes a line of sessions into a file, with all that is needed to continue it.
pub(in crate::cli) async fn export(args: ExportArgs, extensions: Extensions) -> anyhow::Result<()> {
    let ExportArgs {
        session_id,
        output,
        store,
    } = args;
    store
        .with(async |config, store, tenant| {
            let (agents, _) = app::agent_directory(store, config, extensions)?;
            export_line(&**store, &agents, tenant, session_id, &output).await
        })
        .await
}

async fn export_line(
    store: &dyn Store,
    agents: &AgentDirectory,
    tenant: &TenantId,
    session_id: SessionId,
    output: &Path,
) -> anyhow::Result<()> {
    let heads = with_subagents(store, tenant, line_of(store, tenant, session_id).await?).await?;
    let definitions = agents_of(store, agents, tenant, &heads).await?;
    let (output, file) = Output::open(output)?;
    let written = async {
        let mut export = Export::begin(store, tenant, file, session_id)?;
        for agent in definitions {
            export.counts.agents += 1;
            export.write(&Line::Agent(Box::new(agent)))?;
        }
        for head in &heads {
            export.add(head).await?;
        }
        export.finish()
    };
    let written = written.await;
    let counts = written.and_then(|counts| output.finish().map(|()| counts));
    let counts = counts.inspect_err(|_| output.discard())?;
    let Counts { sessions, contents, .. } = counts;
    Ok(print_note(format_args!(
        "{sessions} sessions and {contents} contents of files are in {}",
        output.name()
    ))?)
}

/// Adds the sessions of subagents, each after its ancestors.
async fn with_subagents(
    store: &dyn Store,
    tenant: &TenantId,
    line: Vec<SessionHead>,
) -> anyhow::Result<Vec<SessionHead>> {
    let mut known: HashSet<SessionId> = line.iter().map(|head| head.session_id).collect();
    let (mut heads, mut next) = (line, 0);
    while let Some(head) = heads.get(next) {
        for subagent in subagents_of(store, tenant, head.session_id).await? {
            let line = match line_of(store, tenant, subagent).await {
                Ok(line) => line,
                Err(error) => {
                    print_note(format_args!(
                        "the session {subagent} of a subagent is left out: {error:#}"
                    ))?;
                    continue;
                }
            };
            heads.extend(line.into_iter().filter(|head| known.insert(head.session_id)));
        }
        next += 1;
    }
    Ok(heads)
}

/// Returns the sessions of the subagents that a session's agent started, oldest first.
async fn subagents_of(store: &dyn Store, tenant: &TenantId, session_id: SessionId) -> anyhow::Result<Vec<SessionId>> {
    let filter = SessionFilter {
        subagent_of: Some(session_id),
        ..SessionFilter::default()
    };
    let mut found: Vec<SessionId> = Vec::new();
    loop {
        let page = Page {
            before: found.last().copied(),
            limit: PAGE,
        };
        let more = store.session_list(tenant, &filter, page).await?;
        if more.is_empty() {
            found.reverse();
            return Ok(found);
        }
        found.extend(more.iter().map(|head| head.session_id));
    }
}

/// Returns a session and its ancestors, oldest first.
async fn line_of(store: &dyn Store, tenant: &TenantId, session_id: SessionId) -> anyhow::Result<Vec<SessionHead>> {
    let mut line = Vec::new();
    let mut before = None;
    loop {
        let page = Page { before, limit: PAGE };
        let Some(found) = store.session_lineage(tenant, session_id, page).await? else {
            return Err(absent(store, tenant, session_id).await);
        };
        let Some(last) = found.last() else { break };
        before = Some(last.session_id());
        for ancestor in found {
            match ancestor {
                Ancestor::Retained(head) => line.push(head),
                Ancestor::Removed(removed) => bail!(
                    "the ancestor {} was removed; only a complete line can be exported",
                    removed.session_id
                ),
            }
        }
    }
    line.reverse();
    Ok(line)
}

/// A file that is being written.
struct Export<'a> {
    store: &'a dyn Store,
    tenant: &'a TenantId,
    file: Encoder<'static, BufWriter<Counted>>,
    /// The contents that are in the file.
    written: HashSet<Hash>,
    counts: Counts,
    progress: Progress,
}

impl<'a> Export<'a> {
    fn begin(store: &'a dyn Store, tenant: &'a TenantId, file: Counted, session_id: SessionId) -> anyhow::Result<Self> {
        let mut file = Encoder::new(BufWriter::new(file), LEVEL)?;
        file.include_checksum(true)?;
        let mut export = Self {
            store,
            tenant,
            file,
            written: HashSet::new(),
            counts: Counts::default(),
            progress: Progress::begin(),
        };
        let version = VERSION;
        export.write(&Line::AgentRuntimeSessions(Header { version, session_id }))?;
        Ok(export)
    }

    /// Writes a session, after the contents of its files that are not in the file yet, and after
    /// its run. The session of a subagent has the run of its parent agent's session.
    async fn add(&mut self, head: &SessionHead) -> anyhow::Result<()> {
        let session_id = head.session_id;
        let removed = || anyhow!("the session {session_id} was removed meanwhile");
        let states = self.store.states_load(self.tenant, session_id).await?;
        let states = states.ok_or_else(removed)?;
        let messages = self.store.new_message_list(self.tenant, session_id).await?;
        let session = PortableSession::of(&states, &messages.ok_or_else(removed)?)?;
        if let Some(tree) = states.environment.tree() {
            let added = self.add_contents(tree).await;
            added.with_context(|| format!("the files of the session {session_id}"))?;
        }
        if let Some(run_id) = head.run_id.filter(|_| head.subagent_of.is_none()) {
            self.add_run(run_id, session_id).await?;
        }
        self.counts.sessions += 1;
        self.write(&Line::Session(Box::new(session)))
    }

    /// Writes the run of a session, unless it is hidden. A session from a file without runs has
    /// none.
    async fn add_run(&mut self, run_id: RunId, session_id: SessionId) -> anyhow::Result<()> {
        let record = self.store.run_lookup(self.tenant, run_id).await?;
        let is_shown = |record: &RunRecord| record.summary.session_id == session_id && !record.is_hidden;
        let Some(record) = record.filter(is_shown) else {
            return Ok(());
        };
        let steps = self.store.step_list(self.tenant, run_id).await?.unwrap_or_default();
        self.counts.runs += 1;
        self.write(&Line::Run(Box::new(PortableRun { record, steps })))
    }

    /// Writes everything below a directory. A list of chunks comes after its chunks.
    async fn add_contents(&mut self, tree: Hash) -> anyhow::Result<()> {
        let (mut waiting, mut lists) = (Vec::new(), Vec::new());
        if self.written.insert(tree) {
            waiting.push(tree);
        }
        while !waiting.is_empty() {
            let batch = waiting.split_off(waiting.len().saturating_sub(BATCH));
            for (hash, content) in batch.iter().zip(self.store.content_load(self.tenant, &batch).await?) {
                let content = content.ok_or_else(|| anyhow!("the content {hash} is not stored"))?;
                for link in content_links(content.kind, &content.bytes)? {
                    if self.written.insert(link.hash()) {
                        waiting.push(link.hash());
                    }
                }
                match content.kind {
                    ContentKind::Chunks => lists.push(content),
                    ContentKind::Bytes | ContentKind::Directory => self.write_content(content)?,
                }
            }
        }
        lists.into_iter().try_for_each(|list| self.write_content(list))
    }

    fn write_content(&mut self, content: Content) -> anyhow::Result<()> {
        self.counts.contents += 1;
        self.write(&Line::Content(content.into()))
    }

    fn write(&mut self, line: &Line) -> anyhow::Result<()> {
        serde_json::to_writer(&mut self.file, line)?;
        self.file.write_all(b"\n")?;
        let Counts { sessions, contents, .. } = self.counts;
        let figures = || format!("{sessions} sessions, {contents} contents of files");
        self.progress.show(figures, self.file.get_ref().get_ref().bytes);
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<Counts> {
        let counts = self.counts;
        self.write(&Line::End(counts))?;
        self.file.finish()?.flush()?;
        Ok(counts)
    }
}
