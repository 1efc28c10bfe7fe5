//! Webhooks: signed JSON over HTTP to callers' addresses, and the hook that lets an address decide.
//!
//! The sender knows nothing of hooks or agents. The hook knows nothing of sockets.

mod hook;
mod rules;
mod secrets;
mod sender;

pub use self::hook::WebhookHookFactory;
pub use self::rules::SenderRules;
pub use self::secrets::{SecretTenants, WebhookSecret};
pub use self::sender::{
    Delivered, Delivery, Endpoint, EndpointFault, SendError, SenderError, SenderSettings, SigningKeyError, SigningKeys,
    WebhookSender,
};
