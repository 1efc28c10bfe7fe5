//! Encrypted reasoning: what a provider wants back unchanged, sealed for a client that stores the
//! conversation itself.
//!
//! A seal that does not open is no error. Otherwise a conversation could never go on after the key
//! has changed.

use serde::{Deserialize, Serialize};

use crate::http::openai_settings::Seal;
use values::message::{ProviderFields, ReasoningPart};
use values::tenant::TenantId;

/// A part of a model's reasoning, with the model that alone can read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::http) struct OwnedReasoning {
    /// The reasoning.
    pub(in crate::http) part: ReasoningPart,
    /// The model that made it.
    pub(in crate::http) provider_fields: Option<ProviderFields>,
}

impl OwnedReasoning {
    /// Seals the reasoning for a tenant.
    pub(super) fn seal(&self, seal: &Seal, tenant: &TenantId) -> Option<String> {
        seal.seal(tenant, &serde_json::to_vec(self).ok()?)
    }

    /// Opens sealed reasoning; `None` if this service has not sealed it for the tenant.
    pub(super) fn open(seal: &Seal, tenant: &TenantId, sealed: &str) -> Option<Self> {
        serde_json::from_slice(&seal.open(tenant, sealed)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_reasoning_comes_back_for_its_tenant_alone() {
        let reasoning = OwnedReasoning {
            part: ReasoningPart {
                signature: Some("s".to_owned()),
                ..ReasoningPart::default()
            },
            provider_fields: Some(ProviderFields::owner("anthropic")),
        };
        let seal = Seal::random().unwrap();
        let (acme, globex) = ("acme".parse().unwrap(), "globex".parse().unwrap());
        let sealed = reasoning.seal(&seal, &acme).unwrap();
        assert_eq!(OwnedReasoning::open(&seal, &acme, &sealed), Some(reasoning));
        assert_eq!(OwnedReasoning::open(&seal, &globex, &sealed), None);
    }
}
