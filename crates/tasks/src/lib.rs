//! How work shares the process: fairly by tenant, once for callers that want the same, long
//! computations beside the async threads, and tasks that are started again when they panic. Knows
//! nothing of the work itself.

pub mod fair_share;
pub mod keyed;
pub mod off_thread;
pub mod supervision;
