//! `after-restore`: prepares a database that was restored from a backup.

use super::options::StoreArgs;
use super::output::{print_line, print_note};
use super::requester::requester;
use super::store::on_existing;

/// Prepares the configured store.
pub(super) async fn prepare(args: StoreArgs) -> anyhow::Result<()> {
    on_existing(args, async |_, store| {
        let figures = store.restore_finish(&requester()).await?;
        print_line(format_args!("runs that continue: {}", figures.runs))?;
        print_line(format_args!(
            "webhook messages that are not sent: {}",
            figures.deliveries
        ))?;
        print_line(format_args!(
            "sessions of the console that have ended: {}",
            figures.console_sessions
        ))?;
        Ok(print_note(
            "keys and tokens that were revoked after the backup are valid again: revoke them now",
        )?)
    })
    .await
}
