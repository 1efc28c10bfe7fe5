//! Calls of models, before and after a driver makes one: the models in their order, the parts that
//! their providers refuse, and estimates of their usage. Makes no call.

mod chain;
mod estimate;
mod left_out;

pub use self::chain::{ModelChain, ModelChoice};
pub(crate) use self::estimate::{chars_at_least, estimated_tokens, least_input_tokens, least_tokens, message_tokens};
pub use self::estimate::{content_bytes, estimated_usage, request_bytes};
