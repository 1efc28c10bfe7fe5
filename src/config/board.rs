//! `[board]`: sharing the status, the events and the control signals of live runs between replicas.

use std::path::PathBuf;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::secrets::{SecretUrl, secret_url};
use super::values::duration;

/// Live run status, events and signals shared between replicas.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardConfig {
    /// `None` (an empty string in the file) uses the board inside this process.
    #[serde(deserialize_with = "board_url")]
    pub url: Option<SecretUrl>,
    /// The certificate authorities (PEM) that are trusted for it; `None` (an empty string) trusts
    /// the public ones.
    #[serde(deserialize_with = "optional_path")]
    pub ca_file: Option<PathBuf>,
    /// How long the events of an ended run are retained, if there is room.
    #[serde(deserialize_with = "duration::<1_000, 604_800_000, _>")]
    pub event_retention: Duration,
    /// The most bytes, about, that the events of one run take in this process.
    #[serde(deserialize_with = "super::values::integer::<_, 65_536, { i64::MAX }, _>")]
    pub max_run_event_bytes: usize,
    /// The most bytes, about, that the events of all runs in progress take in this process.
    #[serde(deserialize_with = "super::values::integer::<_, 65_536, { i64::MAX }, _>")]
    pub max_live_event_bytes: usize,
    /// The most bytes, about, that the events of all ended runs take in this process.
    #[serde(deserialize_with = "super::values::integer::<_, 0, { i64::MAX }, _>")]
    pub max_ended_event_bytes: usize,
}

const SCHEMES: [&str; 7] = [
    "",
    "redis",
    "rediss",
    "redis+sentinel",
    "rediss+sentinel",
    "redis+cluster",
    "rediss+cluster",
];

fn board_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretUrl>, D::Error> {
    let url = secret_url(
        deserializer,
        &SCHEMES,
        "\"\" or a URL such as \"redis://HOST:6379\", \"redis+sentinel://HOST:26379,HOST:26379/MASTER\" or \
         \"redis+cluster://HOST:6379,HOST:6379\", each with \"rediss\" for TLS",
    )?;
    check_form(url.expose()).map_err(D::Error::custom)?;
    Ok((!url.expose().is_empty()).then_some(url))
}

/// Checks what the kinds of URLs demand. The messages don't repeat the URL.
fn check_form(url: &str) -> Result<(), &'static str> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let address = rest.split('?').next().unwrap_or_default();
    let address = address.rsplit_once('@').map_or(address, |(_, address)| address);
    let (hosts, path) = address.split_once('/').unwrap_or((address, ""));
    let kind = scheme.split_once('+').map(|(_, kind)| kind);
    match kind {
        Some(_) if hosts.split(',').any(str::is_empty) => Err("a host is missing in the list of hosts"),
        Some("sentinel") if path.is_empty() => {
            Err("the URL must end with the name of the master, as in \"redis+sentinel://HOST:26379/MASTER\"")
        }
        Some("cluster") if !path.is_empty() => Err("the URL of a cluster must end with its hosts"),
        _ => Ok(()),
    }
}

fn optional_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    let path = String::deserialize(deserializer)?;
    Ok((!path.trim().is_empty()).then(|| PathBuf::from(path.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_what_its_kind_demands() {
        for (url, fault) in [
            ("", None),
            ("redis://u:p@h:1/2", None),
            ("rediss+sentinel://u:p@a:1,b/main/2?sentinel_password=x", None),
            ("redis+cluster://a,b:1", None),
            ("redis+sentinel://a,b", Some("the name of the master")),
            ("redis+sentinel://u:p@a,b/", Some("the name of the master")),
            ("redis+sentinel://a,,b/main", Some("a host is missing")),
            ("rediss+cluster://u:p@", Some("a host is missing")),
            ("redis+cluster://a,b/1", Some("must end with its hosts")),
        ] {
            let found = check_form(url).err();
            assert_eq!(found.is_some(), fault.is_some(), "{url}: {found:?}");
            assert!(
                found.unwrap_or_default().contains(fault.unwrap_or_default()),
                "{url}: {found:?}"
            );
        }
    }
}
