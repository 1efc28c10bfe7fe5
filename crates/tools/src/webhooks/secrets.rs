//! The signing secrets that hooks and runs name, and the tenants whose runs they sign for.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::sender::SigningKeys;
use values::tenant::TenantId;

/// A signing secret that webhooks can name.
#[derive(Debug, Clone)]
pub struct WebhookSecret {
    /// The signing keys; `None` if the operator has not set the secret.
    pub keys: Option<SigningKeys>,
    /// The tenants whose runs it signs for.
    pub tenants: SecretTenants,
}

/// The tenants whose runs a secret signs for. As text, they are a list of names; `*` means all.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub enum SecretTenants {
    /// All of them, by configuration.
    All,
    /// Only these tenants.
    These(BTreeSet<TenantId>),
}

impl Default for SecretTenants {
    fn default() -> Self {
        Self::These(BTreeSet::new())
    }
}

impl TryFrom<Vec<String>> for SecretTenants {
    type Error = String;

    fn try_from(names: Vec<String>) -> Result<Self, String> {
        let (all, named): (Vec<_>, Vec<_>) = names.iter().partition(|name| *name == "*");
        let tenant = |name: &String| {
            let tenant = name.parse::<TenantId>();
            tenant.map_err(|_| format!("{name:?} is not the name of a tenant"))
        };
        let tenants = named.into_iter().map(tenant).collect::<Result<_, _>>()?;
        Ok(if all.is_empty() {
            Self::These(tenants)
        } else {
            Self::All
        })
    }
}

impl WebhookSecret {
    /// Returns the keys for messages about a tenant's run; `None` if the secret is not set or does
    /// not sign for the tenant.
    pub fn keys_for(&self, tenant: &TenantId) -> Option<&SigningKeys> {
        self.keys.as_ref().filter(|_| self.is_for(tenant))
    }

    fn is_for(&self, tenant: &TenantId) -> bool {
        match &self.tenants {
            SecretTenants::All => true,
            SecretTenants::These(tenants) => tenants.contains(tenant),
        }
    }
}

/// Finds the keys for runs of the tenant; without a tenant, the keys of any secret.
///
/// The error says what is wrong. It lists no names and no sources, since it must not reveal names
/// and sources of other tenants and of the operator.
pub(super) fn find_keys<'a>(
    secrets: &'a BTreeMap<String, WebhookSecret>,
    name: &str,
    tenant: Option<&TenantId>,
) -> Result<&'a SigningKeys, String> {
    let is_usable = |secret: &&WebhookSecret| tenant.is_none_or(|tenant| secret.is_for(tenant));
    let secret = secrets.get(name).filter(is_usable);
    let secret = secret.ok_or_else(|| format!("no secret is named {name:?}"))?;
    let keys = secret.keys.as_ref();
    keys.ok_or_else(|| format!("the operator has not set the secret {name:?}"))
}
