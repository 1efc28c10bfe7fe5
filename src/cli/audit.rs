//! `audit`: shows the audit log, writes it out, and checks that nobody has changed it.

use anyhow::bail;
use clap::Subcommand;

use super::options::StoreArgs;
use super::output::{JsonArgs, moment, plain, print_line, print_list};
use super::store::on_existing;
use store::Store;
use store::audit::{AuditChain, AuditFault, AuditHead, AuditRecord, ChainCheck};
use values::json::Value;
use values::tenant::TenantId;

/// The most entries that one query reads.
const PAGE: u32 = 200;

/// The commands about the audit log.
#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Lists administrative acts, newest first.
    List {
        #[command(flatten)]
        chain: ChainArgs,
        /// The most acts.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        limit: u32,
        #[command(flatten)]
        json: JsonArgs,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Prints all acts with their hashes, one line of JSON for each, oldest first.
    Export {
        #[command(flatten)]
        chain: ChainArgs,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Checks the hashes of all acts of all tenants; fails if an act is missing or was changed.
    Verify {
        #[command(flatten)]
        store: StoreArgs,
    },
}

/// Which acts to show.
#[derive(Debug, clap::Args)]
pub(super) struct ChainArgs {
    /// Those that concern this tenant. By default, those that concern the whole service.
    #[arg(long)]
    tenant: Option<TenantId>,
}

impl From<ChainArgs> for AuditChain {
    fn from(args: ChainArgs) -> Self {
        args.tenant.map_or(Self::Service, Self::Tenant)
    }
}

/// Runs the command against the configured store.
pub(super) async fn inspect(command: AuditCommand) -> anyhow::Result<()> {
    match command {
        AuditCommand::List {
            chain,
            limit,
            json,
            store,
        } => on_existing(store, async |_, store| list(&**store, &chain.into(), limit, json).await).await,
        AuditCommand::Export { chain, store } => {
            on_existing(store, async |_, store| export(&**store, &chain.into()).await).await
        }
        AuditCommand::Verify { store } => on_existing(store, async |_, store| verify(&**store).await).await,
    }
}

async fn list(store: &dyn Store, chain: &AuditChain, limit: u32, JsonArgs { json }: JsonArgs) -> anyhow::Result<()> {
    let last = store.audit_head(chain).await?.number;
    let mut next = last.saturating_sub(u64::from(limit)) + 1;
    let mut entries = Vec::new();
    while next <= last {
        let records = store.audit_read(chain, next, PAGE).await?;
        next = records.last().map_or(last, |record| record.number) + 1;
        let records = records.into_iter().filter(|record| record.number <= last);
        // `verify` reports an entry that is no JSON.
        entries.extend(records.map(|record| serde_json::from_str(&record.entry).unwrap_or(Value::Null)));
    }
    entries.reverse();
    let heading = ["NUMBER", "TIME", "ACTION", "TARGET", "BY", "DETAILS"];
    print_list(json, entries, |entry| entry, heading, row)
}

/// Shows an entry, which a newer version may have written.
fn row(entry: &Value) -> [String; 6] {
    let text = |name: &str| entry[name].as_str().unwrap_or_default();
    let actor = |name: &str| entry["actor"][name].as_str().unwrap_or_default();
    let by = match actor("kind") {
        "key" if actor("label").is_empty() => format!("key {}", actor("key_id")),
        "key" => format!("key {:?}", actor("label")),
        "token" => format!("{} of {}", actor("sub"), actor("issuer")),
        "certificate" => actor("certificate").to_owned(),
        "command" => format!("{}@{}", actor("user"), actor("host")),
        kind => kind.to_owned(),
    };
    let at = text("at").parse().map_or_else(|_| text("at").to_owned(), moment);
    let details = entry.get("details").map_or_else(String::new, Value::to_string);
    let cells = [
        &entry["number"].to_string(),
        &at,
        text("action"),
        text("target"),
        &by,
        &details,
    ];
    cells.map(|cell| plain(cell).replace('\n', " "))
}

async fn export(store: &dyn Store, chain: &AuditChain) -> anyhow::Result<()> {
    let mut next = 1;
    loop {
        let records = store.audit_read(chain, next, PAGE).await?;
        let Some(last) = records.last() else {
            return Ok(());
        };
        next = last.number + 1;
        for record in &records {
            print_line(serde_json::to_string(record)?)?;
        }
    }
}

async fn verify(store: &dyn Store) -> anyhow::Result<()> {
    let mut faults = 0;
    for chain in store.audit_chains().await? {
        match verify_chain(store, &chain).await? {
            Ok(head) => print_line(format_args!(
                "{chain}: {} acts, the last has the hash {}",
                head.number, head.hash
            ))?,
            Err(fault) => {
                faults += 1;
                print_line(format_args!("{chain}: {fault}"))?;
            }
        }
    }
    match faults {
        0 => Ok(()),
        1 => bail!("one chain of the audit log is not as it was written"),
        faults => bail!("{faults} chains of the audit log are not as they were written"),
    }
}

async fn verify_chain(store: &dyn Store, chain: &AuditChain) -> anyhow::Result<Result<AuditHead, AuditFault>> {
    let mut check = ChainCheck::new(store.audit_head(chain).await?);
    while let Some(next) = check.next() {
        let records = store.audit_read(chain, next, PAGE).await?;
        if records.is_empty() {
            break;
        }
        if let Err(fault) = add_all(&mut check, &records) {
            return Ok(Err(fault));
        }
    }
    let head = match check.end() {
        Ok(head) => head,
        Err(fault) => return Ok(Err(fault)),
    };
    // An act may have been done meanwhile, so the head is read after the entry.
    let further = store.audit_read(chain, head.number + 1, 1).await?;
    let now = store.audit_head(chain).await?.number;
    let unknown = further.iter().map(|record| record.number).find(|number| *number > now);
    Ok(unknown.map_or(Ok(head), |number| Err(AuditFault::Unknown(number))))
}

fn add_all(check: &mut ChainCheck, records: &[AuditRecord]) -> Result<(), AuditFault> {
    for record in records {
        if check.next().is_some() {
            check.add(record)?;
        }
    }
    Ok(())
}
