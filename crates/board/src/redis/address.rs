//! Parses the URL of the server. Opens no connection. Errors never contain the URL, since it may
//! contain a password.

use redis::{ConnectionInfo, IntoConnectionInfo as _, RedisError};

/// The address of a server, or of several servers that act as one.
pub(super) enum Address {
    /// One host.
    One(ConnectionInfo),
    /// A server whose address Sentinels provide.
    Sentinel {
        /// The Sentinels.
        sentinels: Vec<ConnectionInfo>,
        /// The name of the server at the Sentinels.
        master: String,
        /// The credentials and the database of the server itself. The host is not used.
        server: ConnectionInfo,
    },
    /// A cluster with these nodes.
    Cluster(Vec<ConnectionInfo>),
}

/// A URL that names no server.
#[derive(Debug, thiserror::Error)]
pub(super) enum AddressError {
    #[error("no such scheme: use redis, rediss, redis+sentinel, rediss+sentinel, redis+cluster or rediss+cluster")]
    Scheme,
    #[error("a Sentinel's URL ends with the name of the master, as in redis+sentinel://HOST:26379/MASTER")]
    Master,
    #[error("a cluster's URL ends with its hosts: a cluster has one database")]
    ClusterDatabase,
    #[error("no host between commas")]
    Host,
    #[error("the only parameters are sentinel_username and sentinel_password, for Sentinels")]
    Parameter,
    #[error("not a URL of Redis")]
    Malformed(#[source] RedisError),
}

const SENTINEL_PORT: u16 = 26379;
const SERVER_PORT: u16 = 6379;

impl Address {
    /// Reads a URL.
    pub(super) fn parse(url: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = url.split_once("://").ok_or(AddressError::Scheme)?;
        let (scheme, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
        if !matches!(scheme, "redis" | "rediss") {
            return Err(AddressError::Scheme);
        }
        match kind {
            "" => Ok(Self::One(info(url)?)),
            "sentinel" => Self::parse_sentinel(scheme, rest),
            "cluster" => Self::parse_cluster(scheme, rest),
            _ => Err(AddressError::Scheme),
        }
    }

    fn parse_sentinel(scheme: &str, rest: &str) -> Result<Self, AddressError> {
        let parts = Parts::split(rest);
        let (master, database) = parts.path.split_once('/').unwrap_or((parts.path, ""));
        if master.is_empty() {
            return Err(AddressError::Master);
        }
        let credentials = sentinel_credentials(parts.query)?;
        let server = format!("{scheme}://{}unknown:{SERVER_PORT}/{database}", parts.credentials);
        Ok(Self::Sentinel {
            sentinels: infos(scheme, &credentials, parts.hosts, SENTINEL_PORT)?,
            master: master.to_owned(),
            server: info(&server)?,
        })
    }

    fn parse_cluster(scheme: &str, rest: &str) -> Result<Self, AddressError> {
        let parts = Parts::split(rest);
        if !parts.path.is_empty() {
            return Err(AddressError::ClusterDatabase);
        }
        if !parts.query.is_empty() {
            return Err(AddressError::Parameter);
        }
        let nodes = infos(scheme, parts.credentials, parts.hosts, SERVER_PORT)?;
        Ok(Self::Cluster(nodes))
    }
}

/// The parts of a URL after its scheme.
struct Parts<'a> {
    /// Empty, or with the `@` that ends them.
    credentials: &'a str,
    hosts: &'a str,
    /// Without the slash before it.
    path: &'a str,
    query: &'a str,
}

impl<'a> Parts<'a> {
    fn split(rest: &'a str) -> Self {
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (credentials, rest) = rest.split_at(rest.rfind('@').map_or(0, |at| at + 1));
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        Self {
            credentials,
            hosts,
            path,
            query,
        }
    }
}

/// Parses several hosts. Each may have a port.
fn infos(scheme: &str, credentials: &str, hosts: &str, port: u16) -> Result<Vec<ConnectionInfo>, AddressError> {
    let read = |host: &str| match host.rsplit_once(':') {
        _ if host.is_empty() => Err(AddressError::Host),
        // Colons inside the brackets of an IPv6 address do not precede a port.
        Some((_, after)) if !after.ends_with(']') => info(&format!("{scheme}://{credentials}{host}")),
        _ => info(&format!("{scheme}://{credentials}{host}:{port}")),
    };
    hosts.split(',').map(read).collect()
}

/// Returns the credentials for the Sentinels, as in a URL.
fn sentinel_credentials(query: &str) -> Result<String, AddressError> {
    let (mut username, mut password) = ("", "");
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sentinel_username", value)) => username = value,
            Some(("sentinel_password", value)) => password = value,
            _ => return Err(AddressError::Parameter),
        }
    }
    let empty = username.is_empty() && password.is_empty();
    Ok(if empty {
        String::new()
    } else {
        format!("{username}:{password}@")
    })
}

fn info(url: &str) -> Result<ConnectionInfo, AddressError> {
    url.into_connection_info().map_err(AddressError::Malformed)
}

#[cfg(test)]
mod tests {
    use redis::ConnectionAddr;

    use super::*;

    fn show(info: &ConnectionInfo) -> String {
        let host = match info.addr() {
            ConnectionAddr::Tcp(host, port) => format!("{host}:{port}"),
            ConnectionAddr::TcpTls { host, port, .. } => format!("tls {host}:{port}"),
            other => format!("{other:?}"),
        };
        let login = info.redis_settings();
        format!("{:?} {:?} {host} {}", login.username(), login.password(), login.db())
    }

    fn parse(url: &str) -> String {
        let show_all = |infos: &[ConnectionInfo]| infos.iter().map(show).collect::<Vec<_>>().join(", ");
        match Address::parse(url) {
            Ok(Address::One(info)) => show(&info),
            Ok(Address::Cluster(nodes)) => format!("cluster of {}", show_all(&nodes)),
            Ok(Address::Sentinel {
                sentinels,
                master,
                server,
            }) => format!("{master} of {}; {}", show_all(&sentinels), show(&server)),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn each_form_names_its_servers() {
        for (url, wanted) in [
            ("redis://h", "None None h:6379 0"),
            ("rediss://u:p%40@h:1/3", r#"Some("u") Some("p@") tls h:1 3"#),
            (
                "redis+sentinel://a,b:1/main",
                "main of None None a:26379 0, None None b:1 0; None None unknown:6379 0",
            ),
            (
                "rediss+sentinel://:p@a/main/2?sentinel_username=s&sentinel_password=q",
                r#"main of Some("s") Some("q") tls a:26379 0; None Some("p") tls unknown:6379 2"#,
            ),
            (
                "redis+cluster://u:p@a:1,[::1],b",
                r#"cluster of Some("u") Some("p") a:1 0, Some("u") Some("p") ::1:6379 0, Some("u") Some("p") b:6379 0"#,
            ),
            ("rediss+cluster://a/", "cluster of None None tls a:6379 0"),
        ] {
            assert_eq!(parse(url), wanted, "{url}");
        }
    }

    #[test]
    fn a_url_that_names_no_server_is_an_error_with_its_reason() {
        for (url, wanted) in [
            ("", "no such scheme"),
            ("http://h", "no such scheme"),
            ("redis+magic://h", "no such scheme"),
            ("redis://h:port", "not a URL of Redis"),
            (
                "redis+sentinel://h:26379",
                "a Sentinel's URL ends with the name of the master",
            ),
            ("redis+sentinel://a,,b/main", "no host between commas"),
            ("redis+sentinel://a/main?password=hunter2", "the only parameters"),
            ("redis+sentinel://a/main/x", "not a URL of Redis"),
            ("redis+cluster://a,b/1", "a cluster's URL ends with its hosts"),
            ("redis+cluster://a?x=1", "the only parameters"),
        ] {
            let error = parse(url);
            assert!(error.starts_with(&format!("error: {wanted}")), "{url}: {error}");
        }
    }
}
