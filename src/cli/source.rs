//! Where a command finds its data: in a store, or at a running service.

use std::sync::Arc;

use clap::error::ErrorKind;
use secrecy::SecretString;

use super::options::StoreArgs;
use super::output::print_note;
use super::service::Service;
use super::store;
use crate::config::{CallerVariables, Config};
use ::store::Store;
use values::tenant::TenantId;

/// How a command prints its findings, and where it finds them. A command that prints JSON in any
/// case takes the flag too.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ReadArgs {
    /// Prints JSON.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) source: SourceArgs,
}

/// The data of a command.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct SourceArgs {
    /// Asks the service at this address, such as `https://agents.example.org`, and opens no store.
    /// By default the variable `AGENT_RUNTIME_URL`, unless a flag names a store.
    #[arg(long, value_name = "URL", conflicts_with_all = ["tenant", "config", "overrides", "store_url"])]
    url: Option<String>,
    /// The API key for the service; it names the tenant. Other users of this machine can read it
    /// in the list of processes, so set the variable `AGENT_RUNTIME_KEY` instead.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["tenant", "config", "overrides", "store_url"])]
    key: Option<SecretString>,
    /// Works on this tenant's data; by default `default`.
    #[arg(long)]
    tenant: Option<TenantId>,
    #[command(flatten)]
    store: StoreArgs,
}

/// The store that a command works on, and the tenant. For commands that no service offers.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct TenantStoreArgs {
    /// Works on this tenant's data.
    #[arg(long, default_value_t = TenantId::anonymous())]
    pub(super) tenant: TenantId,
    #[command(flatten)]
    store: StoreArgs,
    #[arg(long, hide = true, value_parser = refuse_url)]
    url: Option<String>,
}

/// A source that is chosen and not opened.
#[derive(Debug)]
pub(super) enum Choice {
    /// A store, and the tenant.
    Store(StoreArgs, TenantId),
    /// A service.
    Service(Service),
}

/// An open source.
pub(super) enum Source<'a> {
    /// A store, with the settings of this process.
    Store {
        config: &'a Config,
        store: &'a Arc<dyn Store>,
        tenant: TenantId,
    },
    /// A service.
    Service(Service),
}

impl SourceArgs {
    /// Chooses the source: flags win over the variables of the environment.
    pub(super) fn choose(self) -> anyhow::Result<Choice> {
        self.choose_from(CallerVariables::from_process())
    }

    fn choose_from(self, variables: CallerVariables) -> anyhow::Result<Choice> {
        let url = match self.url {
            None if self.store.is_given() => None,
            url => url.or(variables.url),
        };
        match (url, self.tenant) {
            (Some(url), None) => {
                let key = self.key.or(variables.key);
                Ok(Choice::Service(Service::new(&url, key.as_ref())?))
            }
            (Some(_), Some(_)) => Err(usage(
                "AGENT_RUNTIME_URL names a service, whose key names the tenant: leave out --tenant, or name a store with --store-url",
            )),
            (None, _) if self.key.is_some() => Err(usage("--key is for a service: name it with --url")),
            (None, tenant) => Ok(Choice::Store(self.store, tenant.unwrap_or_else(TenantId::anonymous))),
        }
    }

    /// Runs a command on the source, which must exist.
    pub(super) async fn with(self, command: impl AsyncFnOnce(&Source<'_>) -> anyhow::Result<()>) -> anyhow::Result<()> {
        match self.choose()? {
            Choice::Service(service) => {
                print_note(format_args!("service {}", service.address()))?;
                command(&Source::Service(service)).await
            }
            Choice::Store(args, tenant) => {
                store::on_existing(args, async |config, store| {
                    command(&Source::Store { config, store, tenant }).await
                })
                .await
            }
        }
    }
}

impl TenantStoreArgs {
    /// Runs a command on the store, which must exist.
    pub(super) async fn with(
        self,
        command: impl AsyncFnOnce(&Config, &Arc<dyn Store>, &TenantId) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if !self.store.is_given() && CallerVariables::from_process().url.is_some() {
            return Err(usage(
                "AGENT_RUNTIME_URL names a service, and only a store has this command: name the store with --store-url",
            ));
        }
        let tenant = self.tenant;
        store::on_existing(self.store, async |config, store| command(config, store, &tenant).await).await
    }
}

/// Makes the error of flags that do not fit together.
fn usage(message: &str) -> anyhow::Error {
    clap::Error::raw(ErrorKind::ArgumentConflict, format!("{message}\n")).into()
}

fn refuse_url(_: &str) -> Result<String, String> {
    Err(
        "the API of a service can't move whole sessions: run the command where the store is, with --store-url"
            .to_owned(),
    )
}
