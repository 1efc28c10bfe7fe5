//! `[providers.NAME.aws]`: the region of a provider of kind `bedrock`, and where its signing
//! credentials are found.
//!
//! The credentials themselves are never part of the configuration.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Deserializer};

use super::error::{ConfigError, Fault};
use super::secrets::secret_variable;
use super::values::{Text, variable_name};

/// How requests to AWS are made.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AwsConfig {
    /// The region, unless the variable names another one.
    #[serde(default, deserialize_with = "region")]
    pub region: Option<String>,
    /// The environment variable that holds the region; it wins over `region`.
    #[serde(default, deserialize_with = "variable_name")]
    pub region_env: Option<String>,
    /// The environment variable that holds the id of the access key.
    #[serde(default, deserialize_with = "variable_name")]
    pub access_key_id_env: Option<String>,
    /// The environment variable that holds the secret access key.
    #[serde(default, deserialize_with = "variable_name")]
    pub secret_access_key_env: Option<String>,
    /// The environment variable that holds the token of temporary credentials.
    #[serde(default, deserialize_with = "variable_name")]
    pub session_token_env: Option<String>,
    /// The id of the access key that was found when the configuration was loaded.
    #[serde(skip)]
    pub access_key_id: Option<SecretString>,
    /// The secret access key that was found.
    #[serde(skip)]
    pub secret_access_key: Option<SecretString>,
    /// The session token that was found.
    #[serde(skip)]
    pub session_token: Option<SecretString>,
}

impl AwsConfig {
    /// Returns whether anything is set.
    pub(super) fn is_set(&self) -> bool {
        let set = [
            &self.region,
            &self.region_env,
            &self.access_key_id_env,
            &self.secret_access_key_env,
            &self.session_token_env,
        ];
        set.into_iter().any(Option::is_some)
    }

    /// Reads the variables that are named.
    pub(super) fn read(&mut self, environment: &BTreeMap<String, String>) -> Result<(), ConfigError> {
        let read = |variable: &Option<String>| match variable {
            Some(variable) => secret_variable(environment, variable),
            None => Ok(None),
        };
        if let Some(region) = read(&self.region_env)? {
            self.region = Some(region.expose_secret().to_owned());
        }
        self.access_key_id = read(&self.access_key_id_env)?;
        self.secret_access_key = read(&self.secret_access_key_env)?;
        self.session_token = read(&self.session_token_env)?;
        Ok(())
    }

    /// Checks the region that is in force. It becomes a part of a host's name.
    pub(super) fn check_region(&self, provider: &str) -> Result<(), Fault> {
        match &self.region {
            Some(region) if is_region(region) => Ok(()),
            Some(_) => {
                let problem = "the variable holds no name of a region, such as us-east-1";
                Err(Fault::new(&["providers", provider, "aws", "region_env"], problem))
            }
            None => {
                let problem = "missing: this kind of provider needs a region";
                Err(Fault::new(&["providers", provider, "aws", "region"], problem))
            }
        }
    }
}

fn is_region(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=32).contains(&text.len()) && text.chars().all(plain)
}

fn region<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let parse = |text: &str| is_region(text).then(|| Some(text.to_owned()));
    deserializer.deserialize_str(Text::new("the name of a region of AWS, such as \"us-east-1\"", parse))
}
