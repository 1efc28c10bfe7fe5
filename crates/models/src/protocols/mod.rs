//! The protocols, a folder for each, and their list. All code that depends on the protocol of a
//! provider asks this list.

mod anthropic;
#[cfg(feature = "bedrock")]
mod bedrock;
mod gemini;
mod openai_chat;
mod openai_responses;

use super::address::SettingsError;
use super::protocol::{Protocol, Wire};
use super::settings::{ProviderKind, ProviderSettings};

/// The protocol of Bedrock, if it was built in.
#[cfg(feature = "bedrock")]
static BEDROCK: Option<&Protocol> = Some(&bedrock::PROTOCOL);
#[cfg(not(feature = "bedrock"))]
static BEDROCK: Option<&Protocol> = None;

/// A protocol that was not built in.
pub(super) struct NotBuilt {
    /// The feature of the build.
    pub(super) feature: &'static str,
}

/// Returns the protocol of a kind of providers; `None` for scripts, which need none.
pub(super) fn protocol_of(kind: ProviderKind) -> Result<Option<&'static Protocol>, NotBuilt> {
    Ok(Some(match kind {
        ProviderKind::OpenAiChat => &openai_chat::PROTOCOL,
        ProviderKind::OpenAiResponses => &openai_responses::PROTOCOL,
        ProviderKind::Anthropic => &anthropic::PROTOCOL,
        ProviderKind::Gemini => &gemini::PROTOCOL,
        ProviderKind::Bedrock => BEDROCK.ok_or(NotBuilt { feature: "bedrock" })?,
        ProviderKind::Scripted => return Ok(None),
    }))
}

/// Makes the encoding for a provider; `None` for a scripted one.
pub fn wire(settings: &ProviderSettings) -> Result<Option<Box<dyn Wire>>, SettingsError> {
    let protocol = protocol_of(settings.kind);
    let Some(protocol) = protocol.map_err(|NotBuilt { feature }| SettingsError::NotBuilt { feature })? else {
        return Ok(None);
    };
    let url = protocol.address.endpoint(settings)?;
    Ok(Some((protocol.wire)(settings, &url)))
}
