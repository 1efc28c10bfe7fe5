//! The journal of an execution: the entries that are persisted while it works, so that another
//! process can resume it. No IO: a journal is a port.
//!
//! ```text
//! entry.rs        the port, and its entries
//! recorder.rs     from the steps of the loop to entries
//! progress.rs     from entries to the state that another process resumes
//! record_size.rs  how large the record of the run has become
//! ```

mod entry;
mod progress;
mod record_size;
mod recorder;

pub use self::entry::{Journal, JournalEntry, JournalError, Journals};
pub(crate) use self::progress::{CallStage, PendingCall};
pub use self::progress::{PendingStep, PersistedEnvironment, Progress};
pub use self::record_size::RecordSize;
pub(crate) use self::recorder::JournalFailed;
pub use self::recorder::Recorder;
