//! Merges the texts of files, of which only a bounded number is in memory at a time.

use bytes::Bytes;

use super::certain_edits::LineBudget;
use super::contents::{ContentKind, Contents, ContentsError};
use super::load::{MAX_BATCH_BYTES, load_sized};
use super::merge_leaf::FileTexts;
use super::merge_text::merge_texts;
use super::node::File;
use super::text::MAX_TEXT_BYTES;
use tasks::off_thread::by_size;
use values::session::hash_content;
use values::tenant::TenantId;

/// Merging a byte costs as much as hashing that many.
const WORK_PER_BYTE: u64 = 16;

/// Merges files in order; `None` for a conflict. After much work on difficult files, all later
/// files conflict as well.
pub(super) async fn merge_file_texts(
    files: Vec<FileTexts>,
    contents: &dyn Contents,
) -> Result<Vec<Option<File>>, ContentsError> {
    let mut merged = Vec::with_capacity(files.len());
    let mut budget = LineBudget::of_a_merge();
    let mut rest = &files[..];
    while !rest.is_empty() {
        let (batch, after) = rest.split_at(batch_length(rest));
        rest = after;
        let texts = load_texts(batch, contents).await?;
        for (file, texts) in batch.iter().zip(texts) {
            let text;
            (text, budget) = merge_one(contents.tenant(), texts, budget).await;
            merged.push(text.map(|text| file.merged(text)));
        }
    }
    Ok(merged)
}

impl FileTexts {
    fn versions(&self) -> [&File; 3] {
        [&self.base, &self.ours, &self.theirs]
    }

    fn is_small(&self) -> bool {
        self.versions().iter().all(|file| file.size <= MAX_TEXT_BYTES as u64)
    }

    fn bytes(&self) -> u64 {
        if self.is_small() {
            self.versions().iter().map(|file| file.size).sum()
        } else {
            0
        }
    }

    fn merged(&self, text: Bytes) -> File {
        File {
            hash: hash_content(&text),
            size: text.len() as u64,
            is_executable: self.is_executable,
            modified: 0,
            unsaved: Some(text),
        }
    }
}

/// Returns how many of the files are in memory at a time; at least one.
fn batch_length(files: &[FileTexts]) -> usize {
    let mut bytes = 0;
    let fits = |file: &&FileTexts| {
        bytes += file.bytes();
        bytes <= MAX_BATCH_BYTES
    };
    files.iter().take_while(fits).count().max(1)
}

/// Loads the versions of files; `None` for files that are too large.
async fn load_texts(files: &[FileTexts], contents: &dyn Contents) -> Result<Vec<Option<[Bytes; 3]>>, ContentsError> {
    let small = files.iter().filter(|file| file.is_small());
    let stored = small
        .flat_map(FileTexts::versions)
        .filter(|file| file.unsaved.is_none());
    let wanted: Vec<_> = stored.map(|file| (file.hash, file.size)).collect();
    let mut loaded = load_sized(contents, &wanted, ContentKind::Bytes).await?.into_iter();
    let mut bytes_of = |file: &File| file.unsaved.clone().or_else(|| loaded.next()).unwrap_or_default();
    let texts = |file: &FileTexts| file.is_small().then(|| file.versions().map(&mut bytes_of));
    Ok(files.iter().map(texts).collect())
}

/// Merges a file off the async workers, unless it is small.
async fn merge_one(
    tenant: &TenantId,
    texts: Option<[Bytes; 3]>,
    mut budget: LineBudget,
) -> (Option<Bytes>, LineBudget) {
    let Some(texts) = texts else {
        return (None, budget);
    };
    let bytes: usize = texts.iter().map(Bytes::len).sum();
    let work = move || {
        let [base, ours, theirs] = &texts;
        let merged = merge_texts(base, ours, theirs, &mut budget);
        (merged.map(Bytes::from), budget)
    };
    by_size(tenant, WORK_PER_BYTE * bytes as u64, work).await
}
