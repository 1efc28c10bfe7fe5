//! Chat completions: the rules of the decoder and of calls, and requests. Their recordings are the
//! common ones.

mod calls;
mod choices;
pub(super) mod decoder;
pub(super) mod forms;
mod left_out;
mod repeats;
mod request;
