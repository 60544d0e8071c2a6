//! Where members may be: requests go nowhere else, whatever is announced.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use thiserror::Error;

use crate::proxy::engine::EngineUrl;

/// One place where members may be: a network, an address, or a name, with or without a
/// port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowWorkers {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    Net(IpNet),
    /// A name as it is announced; it is not looked up.
    Name(String),
    /// All names that end so; begins with a dot.
    Below(String),
}

/// A text that is no such place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "a network, an address, a name or *.name, with a port or without: 10.0.0.0/8, \
     [fd00::/8]:8100, worker-0.workers:8100, *.workers.svc"
)]
pub struct AllowWorkersError;

impl AllowWorkers {
    /// Whether a worker at `url` may get requests.
    #[must_use]
    pub fn covers(&self, url: &EngineUrl) -> bool {
        self.port.is_none_or(|port| port == url.port()) && self.hosts.cover(url.host())
    }
}

impl Hosts {
    fn cover(&self, host: &str) -> bool {
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        match (self, host.parse::<IpAddr>()) {
            (Self::Net(net), Ok(ip)) => net.contains(&ip.to_canonical()),
            (Self::Net(_), Err(_)) | (_, Ok(_)) => false,
            (Self::Name(allowed), _) => name == *allowed,
            (Self::Below(end), _) => name.len() > end.len() && name.ends_with(end.as_str()),
        }
    }
}

impl FromStr for AllowWorkers {
    type Err = AllowWorkersError;

    fn from_str(text: &str) -> Result<Self, AllowWorkersError> {
        let text = text.trim();
        // An IPv6 network has colons of its own.
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or(AllowWorkersError)?;
                let port = rest.strip_prefix(':');
                if port.is_none() && !rest.is_empty() {
                    return Err(AllowWorkersError);
                }
                (host, port)
            }
            None if text.matches(':').count() > 1 => (text, None),
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let port = port.map(str::parse).transpose();
        Ok(Self {
            hosts: hosts(host).ok_or(AllowWorkersError)?,
            port: port.map_err(|_| AllowWorkersError)?,
        })
    }
}

fn hosts(host: &str) -> Option<Hosts> {
    if let Ok(net) = host.parse() {
        return Some(Hosts::Net(net));
    }
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Some(Hosts::Net(ip.into()));
    }
    let (below, name) = match host.strip_prefix('*') {
        Some(end) => (true, end.strip_prefix('.')?),
        None => (false, host),
    };
    let usable = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    // Numbers alone would be an address with something wrong.
    let named = name.chars().any(|c| c.is_ascii_alphabetic());
    if !named || !name.chars().all(usable) || name.starts_with('.') {
        return None;
    }
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    Some(match below {
        true => Hosts::Below(format!(".{name}")),
        false => Hosts::Name(name),
    })
}

impl fmt::Display for AllowWorkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.hosts, self.port.is_some()) {
            (Hosts::Net(net), true) => write!(f, "[{net}]")?,
            (Hosts::Net(net), false) => write!(f, "{net}")?,
            (Hosts::Name(name), _) => f.write_str(name)?,
            (Hosts::Below(end), _) => write!(f, "*{end}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_inside_is_covered() {
        for (allowed, url, covered) in [
            ("10.0.0.0/8", "http://10.1.2.3:8100", true),
            ("10.0.0.0/8", "http://11.1.2.3:8100", false),
            ("10.0.0.0/8:8100", "http://10.1.2.3:8100/base", true),
            ("10.0.0.0/8:8100", "http://10.1.2.3:8101", false),
            ("10.0.0.0/8:80", "http://10.1.2.3", true),
            ("10.0.0.0/8:443", "https://10.1.2.3", true),
            ("127.0.0.1", "http://127.0.0.1:9", true),
            ("127.0.0.1", "http://127.0.0.2:9", false),
            // A name is not looked up.
            ("127.0.0.1", "http://localhost:9", false),
            ("0.0.0.0/0", "http://localhost:9", false),
            ("localhost:9", "http://LOCALHOST:9", true),
            ("localhost", "http://localhost.evil:9", false),
            ("*.workers.svc", "http://a.workers.svc:1", true),
            ("*.workers.svc", "http://a.b.workers.svc.:1", true),
            ("*.workers.svc", "http://workers.svc:1", false),
            ("*.workers.svc", "http://evilworkers.svc:1", false),
            ("*.workers.svc", "http://a.workers.svc.evil:1", false),
            ("[fd00::/8]:8100", "http://[fd00::1]:8100", true),
            ("fd00::/8", "http://[fe80::1]:8100", false),
            ("::1", "http://[::1]:8100", true),
            ("10.0.0.0/8", "http://[::ffff:10.0.0.1]:1", true),
            ("10.0.0.0/8", "http://[::ffff:11.0.0.1]:1", false),
        ] {
            let url: EngineUrl = url.parse().unwrap();
            let place: AllowWorkers = allowed.parse().unwrap();
            assert_eq!(place.covers(&url), covered, "{allowed} {url}");
            let again: AllowWorkers = place.to_string().parse().unwrap();
            assert_eq!(again, place);
        }
    }

    #[test]
    fn what_is_no_place_says_what_one_is() {
        for bad in [
            "",
            "*",
            "*.",
            "**",
            "10.0.0.0/33",
            "10.0.0",
            "http://h",
            "h/path",
            "h:x",
            "h:70000",
            "[::1",
            "[::1]x",
            "a b",
            ".a",
            "*.*.a",
            "@",
        ] {
            assert!(bad.parse::<AllowWorkers>().is_err(), "{bad}");
        }
        let said = AllowWorkersError.to_string();
        assert!(said.contains("10.0.0.0/8"), "{said}");
    }
}
