//! `[store]` and `[store.objects]`: where sessions, runs and large contents are stored.
//!
//! Credentials of an object store are never part of the configuration. They are read from the
//! variables that the tools of its provider read as well.

use serde::{Deserialize, Deserializer};

use super::error::ConfigError;
use super::secrets::{SecretUrl, secret_url};
use super::sections::Sections;
use store::objects::{ObjectSettings, ObjectStoreKind};
use values::settings::integer;

/// Where sessions are stored, and how many of them stay in memory.
#[derive(Clone, Debug, Deserialize)]
pub struct StoreConfig {
    #[serde(deserialize_with = "store_url")]
    pub url: SecretUrl,
    /// The bytes of the cache of committed sessions; 0 disables the cache.
    #[serde(deserialize_with = "integer::<_, 0, { i64::MAX }, _>")]
    pub cache_bytes: u64,
    /// The most bytes of each part of a session, as JSON. The parts are the messages that a run
    /// needs, the environment and the context.
    #[serde(deserialize_with = "integer::<_, 65_536, 268_435_456, _>")]
    pub max_session_bytes: usize,
}

impl StoreConfig {
    /// Returns the URL of the store without its password. The path of an SQLite file is absolute,
    /// so the URL works from any folder.
    pub fn address(&self) -> String {
        let shown = self.url.to_string();
        let whole = shown.strip_prefix("sqlite://").and_then(|file| {
            let (path, query) = file.split_at(file.find('?').unwrap_or(file.len()));
            let path = std::path::absolute(path).ok()?;
            Some(format!("sqlite://{}{query}", path.display()))
        });
        whole.unwrap_or(shown)
    }
}

fn store_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretUrl, D::Error> {
    secret_url(
        deserializer,
        &["sqlite", "postgres", "postgresql"],
        "a URL such as \"sqlite://data/agent-runtime.db\" or \"postgres://USER@HOST/DATABASE\"",
    )
}

/// Reads where large contents are stored, with the variables of the object store's provider.
pub(super) fn objects(sections: &Sections<'_>) -> Result<Option<ObjectSettings>, ConfigError> {
    let mut settings: ObjectSettings = sections.read("store.objects")?;
    let kind = ObjectStoreKind::of(&settings.url);
    if let Some(prefix) = kind.and_then(ObjectStoreKind::variables) {
        let variables = sections.variables(prefix)?.into_iter();
        settings.options = variables.map(|(name, value)| (name.to_lowercase(), value)).collect();
    }
    Ok(kind.map(|_| settings))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::super::{Sources, load, parse_override};
    use super::*;

    #[test]
    fn the_address_of_a_file_leads_there_from_any_folder() {
        let here = std::env::current_dir().unwrap();
        let here = here.display();
        for (url, address) in [
            ("sqlite://data/a.db", format!("sqlite://{here}/data/a.db")),
            ("sqlite://a.db?mode=rwc", format!("sqlite://{here}/a.db?mode=rwc")),
            ("sqlite:///var/a.db", "sqlite:///var/a.db".to_owned()),
            (
                "postgres://app:hunter2@db/x",
                "postgres://app:[redacted]@db/x".to_owned(),
            ),
        ] {
            let loaded = load(&Sources {
                overrides: vec![parse_override(&format!("store.url={url}")).unwrap()],
                ..Sources::default()
            });
            assert_eq!(loaded.unwrap().config.store.address(), address);
        }
    }

    fn objects_of(url: &str, variables: &[(&str, &str)]) -> Result<Option<ObjectSettings>, ConfigError> {
        let environment = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let loaded = load(&Sources {
            environment: environment.collect(),
            overrides: vec![parse_override(&format!("store.objects.url={url}")).unwrap()],
            ..Sources::default()
        });
        loaded.map(|loaded| loaded.config.objects)
    }

    #[test]
    fn addresses_have_a_known_scheme_and_no_credentials() {
        for (url, expected) in [
            ("", None),
            ("s3://bucket/a/b/", Some("s3://bucket/a/b")),
            ("gs://bucket", Some("gs://bucket")),
            ("az://container/x", Some("az://container/x")),
            ("file:///var/lib/objects", Some("file:///var/lib/objects")),
        ] {
            let found = objects_of(url, &[]).unwrap();
            assert_eq!(found.as_ref().map(|found| found.url.as_str()), expected, "{url}");
        }
        for url in [
            "bucket",
            "s3://",
            "s3:///prefix",
            "file://var/lib",
            "ftp://host/x",
            "s3://key:hunter2@bucket",
            "s3://bucket?key=hunter2",
        ] {
            let error = format!("{:#}", objects_of(url, &[]).unwrap_err());
            assert!(
                error.contains("s3://BUCKET/PREFIX") && !error.contains("hunter2"),
                "{url}: {error}"
            );
        }
    }

    #[test]
    fn the_variables_of_the_provider_are_read() {
        let variables = [
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_REGION", " eu-central-1 "),
            ("AWS_SESSION_TOKEN", ""),
            ("AZURE_STORAGE_ACCOUNT_KEY", "other"),
        ];
        let names = |url| -> Vec<_> {
            let options = objects_of(url, &variables).unwrap().map(|found| found.options);
            let options = options.unwrap_or_default().into_iter();
            options
                .map(|(name, value)| format!("{name}={}", value.expose_secret()))
                .collect()
        };
        assert_eq!(
            names("s3://bucket"),
            ["aws_access_key_id=id", "aws_region=eu-central-1"]
        );
        assert_eq!(names("az://box"), ["azure_storage_account_key=other"]);
        assert_eq!(names("file:///x"), [""; 0]);
        assert_eq!(names(""), [""; 0]);
    }
}
