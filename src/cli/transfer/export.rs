//! `sessions export`.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use anyhow::{Context as _, anyhow, bail};
use zstd::Encoder;

use super::{Counts, Header, Line, VERSION};
use crate::cli::absent::absent;
use crate::cli::output::print_note;
use crate::ids::SessionId;
use crate::session::{Hash, SessionHead};
use crate::store::{Ancestor, Page, PortableSession, Store};
use crate::tenant::TenantId;
use crate::workspace::{Content, ContentKind, content_links};

/// The level of compression.
const LEVEL: i32 = 6;
/// How many sessions of the line are listed at once.
const PAGE: u32 = 200;
/// How many contents are read at once.
const BATCH: usize = 32;

/// What to export, and where to.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ExportArgs {
    /// The last session of the line. Its ancestors are exported with it.
    session_id: SessionId,
    /// The file to write. An existing file is replaced.
    #[arg(long, short)]
    output: PathBuf,
    /// Works on this tenant's data.
    #[arg(long, default_value_t = TenantId::anonymous())]
    tenant: TenantId,
}

/// Writes a line of sessions with its files into a file.
pub(in crate::cli) async fn export(store: &dyn Store, args: ExportArgs) -> anyhow::Result<()> {
    let ExportArgs {
        session_id,
        output,
        tenant,
    } = args;
    let line = line_of(store, &tenant, session_id).await?;
    // The file has its name only once it is complete.
    let mut partial = output.clone().into_os_string();
    partial.push(".partial");
    let written = async {
        let mut export = Export::begin(store, &tenant, &PathBuf::from(&partial), session_id)?;
        for head in &line {
            export.add(head).await?;
        }
        export.finish()
    };
    let counts = match written.await {
        Ok(counts) => counts,
        Err(error) => {
            // The cause matters more than a file that is left over.
            let _ = fs::remove_file(&partial);
            return Err(error);
        }
    };
    fs::rename(&partial, &output).with_context(|| format!("can't write {}", output.display()))?;
    let Counts { sessions, contents } = counts;
    Ok(print_note(format_args!(
        "{sessions} sessions and {contents} contents of files are in {}",
        output.display()
    ))?)
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
    file: Encoder<'static, BufWriter<File>>,
    /// The contents that are in the file.
    written: HashSet<Hash>,
    counts: Counts,
}

impl<'a> Export<'a> {
    fn begin(
        store: &'a dyn Store,
        tenant: &'a TenantId,
        path: &PathBuf,
        session_id: SessionId,
    ) -> anyhow::Result<Self> {
        let file = File::create(path).with_context(|| format!("can't write {}", path.display()))?;
        let mut file = Encoder::new(BufWriter::new(file), LEVEL)?;
        file.include_checksum(true)?;
        let mut export = Self {
            store,
            tenant,
            file,
            written: HashSet::new(),
            counts: Counts::default(),
        };
        let version = VERSION;
        export.write(&Line::AgentRuntimeSessions(Header { version, session_id }))?;
        Ok(export)
    }

    /// Writes a session, after the contents of its files that are not in the file yet.
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
        self.counts.sessions += 1;
        self.write(&Line::Session(Box::new(session)))
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
        Ok(self.file.write_all(b"\n")?)
    }

    fn finish(mut self) -> anyhow::Result<Counts> {
        let counts = self.counts;
        self.write(&Line::End(counts))?;
        let file = self.file.finish()?.into_inner()?;
        file.sync_all()?;
        Ok(counts)
    }
}
