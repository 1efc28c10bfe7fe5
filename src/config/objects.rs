//! `[store.objects]`: the object store for large contents.
//!
//! Credentials are never part of the configuration. They are read from the variables of the
//! environment that the tools of the provider read as well.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};

use super::error::ConfigError;
use super::secrets::secret_variable;
use super::values::{Text, integer};

/// The schemes of addresses, each with what the names of its variables begin with.
const SCHEMES: [(&str, Option<&str>); 4] = [
    ("file", None),
    ("s3", Some("AWS_")),
    ("gs", Some("GOOGLE_")),
    ("az", Some("AZURE_")),
];

/// Where large contents are stored.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectsConfig {
    /// `None` (an empty string in the file) leaves all contents in the database.
    #[serde(deserialize_with = "objects_url")]
    pub url: Option<String>,
    /// Smaller contents stay in the database.
    #[serde(deserialize_with = "integer::<_, 1_024, 1_048_576, _>")]
    pub min_bytes: u64,
    /// The settings of the client that were found, by the names of their variables in lower case.
    #[serde(skip)]
    pub options: Vec<(String, SecretString)>,
}

impl ObjectsConfig {
    /// Reads the variables of the object store's provider.
    pub(super) fn read(&mut self, environment: &BTreeMap<String, String>) -> Result<(), ConfigError> {
        let scheme = self.url.as_deref().and_then(scheme);
        let Some(prefix) = scheme.and_then(|(_, prefix)| prefix) else {
            return Ok(());
        };
        for variable in environment.keys().filter(|name| name.starts_with(prefix)) {
            if let Some(value) = secret_variable(environment, variable)? {
                self.options.push((variable.to_lowercase(), value));
            }
        }
        Ok(())
    }
}

fn scheme(url: &str) -> Option<(&'static str, Option<&'static str>)> {
    let (scheme, _) = url.split_once("://")?;
    SCHEMES.into_iter().find(|(known, _)| *known == scheme)
}

fn objects_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    deserializer.deserialize_str(Text::secret(
        "\"\" or a URL such as \"s3://BUCKET/PREFIX\", \"gs://BUCKET\", \"az://CONTAINER\" or \
         \"file:///var/lib/objects\", without credentials, query or fragment",
        |text: &str| {
            let url = text.trim().trim_end_matches('/');
            if url.is_empty() {
                return text.trim().is_empty().then_some(None);
            }
            let (name, _) = scheme(url)?;
            let rest = &url[name.len() + "://".len()..];
            let plain = rest.chars().all(|c| c.is_ascii_graphic() && !"@?#\"<>\\".contains(c));
            // Only a directory has no host.
            let named = !rest.is_empty() && rest.starts_with('/') == (name == "file");
            (plain && named).then(|| Some(url.to_owned()))
        },
    ))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::super::{Sources, load, parse_override};
    use super::*;

    fn loaded(url: &str, variables: &[(&str, &str)]) -> Result<ObjectsConfig, ConfigError> {
        let environment = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let loaded = load(&Sources {
            environment: environment.collect(),
            overrides: vec![parse_override(&format!("store.objects.url={url}")).unwrap()],
            ..Sources::default()
        });
        loaded.map(|loaded| loaded.config.store.objects)
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
            assert_eq!(loaded(url, &[]).unwrap().url.as_deref(), expected, "{url}");
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
            let error = format!("{:#}", loaded(url, &[]).unwrap_err());
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
            let options = loaded(url, &variables).unwrap().options.into_iter();
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
